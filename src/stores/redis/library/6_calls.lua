-- What clients call. Every call's keys begin with the state of a name, and its first argument is '1' in a cluster, else
-- '0'.

-- A call about one name. KEYS: its state, the observed marker. ARGV: what the verb takes after the bytes of the state.
local function about_one(verb)
  return function(keys, args)
    begin(keys, args[1])
    local found = call('MGET', keys[1], keys[2])
    observed = found[2]
    return verb(keys[1], found[1], args[2], args[3], args[4], args[5], args[6])
  end
end

-- Many names of a partition, read at once. KEYS: the state of each, the observed marker, and `extra` more.
local function read_all(keys, extra)
  local names = #keys - 1 - extra
  local found = call('MGET', unpack(keys, 1, names + 1))
  states = {}
  for i = 1, names do states[keys[i]] = found[i] end
  observed = found[names + 1]
  return names
end

local function append(answer, ...)
  for i = 1, select('#', ...) do answer[#answer + 1] = (select(i, ...)) end
end

-- As a member of a quorum: for how long this server's word does not count, because it lost its state. The mark goes
-- with the data, and names the run of the server that wrote it, since a restart may have brought back old data.
-- longest: ttl; keeps: '1' where a restart loses nothing.
local function counts_after(key, longest, keeps)
  local run = string.match(call('INFO', 'server'), 'run_id:(%w+)') or ''
  local since, of = string.match(call('GET', key) or '', '^(%d+) (%w*)$')
  since = tonumber(since)
  if not since or (of ~= run and keeps ~= '1') then
    since = now
    call('SET', key, string.format('%.0f %s', now, run))
  end
  return max(0, since + longest - now), run
end

-- A value that somebody cut off makes the rules fail like this; anything else is the server's word, and fails the call.
local function damaged(why)
  return type(why) == 'string'
    and (string.find(why, 'too short', 1, true) or string.find(why, 'attempt to', 1, true))
end

local calls = {
  attempt = about_one(attempt), -- claim, name (absent or empty where the key tells it)
  change = about_one(change), -- claim, mode
  transfer = about_one(transfer), -- claim that is to hold, id that holds, remember
  inspect = about_one(inspect),
  latch = about_one(latch), -- 's' or 'd', count, id, life, name
  latch_count = about_one(function(key, bytes) return latch(key, bytes, 'r') end),
}

-- KEYS: state, observed marker. ARGV: claim, remember, name.
function calls.leave(keys, args)
  if not call then bind() end
  local found = args[1] == '0' and not args[3] and call('MGET', keys[1], keys[2])
  if found then
    states, observed = nil, found[2]
    if found[1] and leave_idle(keys[1], found[1], args[2]) then return 0 end
  end
  begin(keys, args[1])
  found = found or call('MGET', keys[1], keys[2])
  observed = found[2]
  return leave(keys[1], found[1], args[2], args[3], args[4])
end

-- KEYS: state, observed marker. ARGV: '1' force or '0', then the ids meant; none: all.
function calls.revoke(keys, args)
  return about_one(function(key, bytes, force) return revoke(key, bytes, force, unpack(args, 3)) end)(keys, args)
end

-- KEYS: the state of each claim, then the observed marker. ARGV: the claims.
-- {now, then for each claim: state, fence, ttl, flags, recheck after}
function calls.renew(keys, args)
  begin(keys, args[1])
  local answer = { now }
  for i = 1, read_all(keys, 0) do append(answer, renew(keys[i], states[keys[i]], args[i + 1])) end
  return answer
end

-- An attempt at one member of a quorum: it does not queue, and proposes a fence. KEYS: state, observed marker, restart
-- mark. ARGV: claim, name, proposed fence, the longest ttl, '1' where a restart loses nothing.
-- {1, now, fence, ttl, flags, counts after, run id}: granted; else as attempt.
function calls.vote(keys, args)
  begin(keys, args[1])
  local after, run = counts_after(keys[3], tonumber(args[5]), args[6])
  local found = call('MGET', keys[1], keys[2])
  observed = found[2]
  local answer = attempt(keys[1], found[1], args[2], args[3], tonumber(args[4]))
  if type(answer) == 'number' then answer = { 1, now, now, ttl_of(args[2]), 0 } end
  if type(answer) == 'table' and answer[1] == 1 then append(answer, after, run) end
  return answer
end

-- Renewals at one member of a quorum, each with a fence: only of claims that hold. KEYS: the state of each claim, then
-- the observed marker, then the restart mark. ARGV: the longest ttl, '1' where a restart loses nothing, then for each
-- claim: claim, fence. {now, counts after, run id, then as renew}
function calls.raise(keys, args)
  begin(keys, args[1])
  local answer = { now, counts_after(keys[#keys], tonumber(args[2]), args[3]) }
  for i = 1, read_all(keys, 1) do
    append(answer, renew(keys[i], states[keys[i]], args[2 * i + 2], tonumber(args[2 * i + 3])))
  end
  return answer
end

-- KEYS: states, then the observed marker. {now, then for each that is not idle, as most are: its number, holders,
-- waiters, name, lock delay left}; holders -1: what is stored there cannot be read.
function calls.list(keys, args)
  begin(keys, args[1])
  local answer = { now }
  for i = 1, read_all(keys, 0) do
    local bytes = states[keys[i]]
    if bytes and sub(bytes, 1, 5) ~= 'hf3s\0' then
      local fine, found = pcall(summary, keys[i], bytes)
      if not fine and not damaged(found) then error(found, 0) end
      append(answer, i, unpack(fine and found or { -1, 0, '', 0 }))
    end
  end
  return answer
end

-- Attempts and releases that came at the same time, in their order. KEYS: of each, state and observed marker.
-- ARGV: a letter for each, 'a' for an attempt and 'l' for a release; then the claim of each. For each what attempt or
-- leave answers; an error is that one's alone.
function calls.batch(keys, args)
  begin(keys, args[1])
  local found = call('MGET', unpack(keys))
  states = {}
  for i = 1, #keys, 2 do states[keys[i]] = found[i] end
  local answers = {}
  for i = 1, #args[2] do
    local key = keys[2 * i - 1]
    observed = found[2 * i]
    local fine, answer = pcall(byte(args[2], i) == 97 and attempt or leave, key, states[key], args[i + 2])
    if not fine and type(answer) ~= 'table' then answer = { err = answer } end
    answers[i] = answer
  end
  return answers
end

-- Tells a client that the library is there.
function calls.version() return 3 end

-- A function without the flag is refused, before it does anything, when the server's memory is out: one that takes more
-- of it. Whatever gives back or keeps goes through.
local function register(flags, names)
  for i = 1, #names do
    redis.register_function({
      function_name = 'holdfast_4_' .. names[i], callback = calls[names[i]], flags = flags,
    })
  end
end

if not wrapped then
  register({}, { 'attempt', 'vote', 'latch', 'batch' })
  register({ 'no-writes' }, { 'version' })
  register({ 'allow-oom' }, {
    'leave', 'renew', 'raise', 'change', 'transfer', 'revoke', 'inspect', 'list', 'latch_count',
  })
end
