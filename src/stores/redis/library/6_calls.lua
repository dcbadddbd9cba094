-- What clients call. KEYS: the state of each name, and the key that says whether its partition is observed. ARGV: '1'
-- in a cluster, else '0', then what the verb takes.

-- The answer of a verb, or why there is none: a refusal, or an error reply.
local function answer_of(verb, ...)
  local fine, answer = pcall(verb, ...)
  if fine then return answer end
  if type(answer) == 'table' then return answer.reply or answer end
  return { err = 'ERR Error running script: ' .. answer } -- as Redis 6.2 words it, where a call raises a text
end

-- Of one name.
local function about_one(verb)
  return function(keys, args)
    local found = begin(keys, args[1])
    return answer_of(verb, keys[1], found[1], found[2], unpack(args, 2))
  end
end

local calls = {
  attempt = about_one(attempt), -- claim, name (absent or empty if the key has it)
  leave = about_one(leave), -- claim, remember, name
  change = about_one(change), -- claim, mode
  transfer = about_one(transfer), -- claim that will hold, id that holds, remember
  revoke = about_one(revoke), -- '1' force or '0', then the ids to revoke; none: all
  inspect = about_one(inspect),
  latch = about_one(latch), -- 's' or 'd', count, id, life, name
  latch_count = about_one(latch), -- 'r'
  version = function() return 4 end, -- tells a client that the library is there
}

-- An attempt at one member of a quorum: it does not queue, and it proposes a fence. KEYS: also the restart mark. ARGV:
-- claim, name, proposed fence, the longest ttl, '1' if a restart loses nothing. {1, now, fence, ttl, flags, the answer
-- of counts_after}: granted; else as attempt.
function calls.vote(keys, args)
  local found = begin(keys, args[1])
  read_clock()
  local after, run = counts_after(found[3], args[5], args[6])
  local answer = answer_of(attempt, keys[1], found[1], found[2], args[2], args[3], tonumber(args[4]))
  if type(answer) == 'number' then answer = { 1, now, now, ttl_of(args[2]), 0 } end
  if answer[1] == 1 then answer[6], answer[7] = after, run end
  return answer
end

-- Renewals in a partition. KEYS: states, observed, for members of a quorum the restart mark. ARGV: the claims; for
-- members the longest ttl, '1' if a restart loses nothing, and for each claim a fence. {now, then the answer of renew
-- for each; for members, the answer of counts_after}
function calls.renew(keys, args)
  local found = begin(keys, args[1])
  read_clock()
  local votes, answer, latest = keys[#keys] == RESTART_MARK, { now }, {}
  local names = #keys - (votes and 2 or 1)
  for i = 1, names do
    local key, fence = keys[i], tonumber(args[names + 3 + i])
    answer[i + 1] = answer_of(renew, key, latest[key] or found[i], found[names + 1], args[i + 1], fence)
    latest[key] = stored -- it may occur again
  end
  if votes then
    answer[names + 2], answer[names + 3] = counts_after(found[#keys], args[names + 2], args[names + 3])
  end
  return answer
end

-- A truncated value makes the rules fail like this.
local function is_damaged(why)
  return string.find(why, 'too short', 1, true) or string.find(why, 'attempt to', 1, true)
end

-- KEYS: states, then observed. {now, then for each name that is not idle, which most are: {its number, the answer of
-- summary}}; holders -1: what is stored there cannot be read.
function calls.list(keys, args)
  local found = begin(keys, args[1])
  read_clock()
  local answer = { now }
  for i = 1, #keys - 1 do
    if found[i] and sub(found[i], 1, 5) ~= 'hf4s\0' then
      local sums = answer_of(summary, keys[i], found[i], found[#keys])
      if sums.err and not is_damaged(sums.err) then return sums end
      if sums.err then sums = { -1, 0, '', 0 } end
      local refused = type(sums[3]) == 'number' -- not ours
      if not refused then answer[#answer + 1] = { i, unpack(sums) } end
    end
  end
  return answer
end

-- Attempts and releases that came at the same time, in their order. KEYS: for each, state and observed. ARGV: a letter
-- for each, 'a' for an attempt and 'l' for a release; then the claim of each. For each the answer of attempt or leave;
-- an error concerns that one alone.
function calls.batch(keys, args)
  local found = begin(keys, args[1])
  local answers, latest = {}, {}
  for i = 1, #args[2] do
    local verb, key = byte(args[2], i) == 97 and attempt or leave, keys[2 * i - 1]
    answers[i] = answer_of(verb, key, latest[key] or found[2 * i - 1], found[2 * i], args[i + 2])
    latest[key] = stored -- it may occur again
  end
  return answers
end

-- A function without the flag needs memory: it is refused, before it does anything, when the server has none left.
-- Functions that give back or keep get through.
local function register(flags, names)
  for i = 1, #names do
    redis.register_function({
      function_name = 'holdfast_7_' .. names[i], callback = calls[names[i]], flags = flags,
    })
  end
end

if not wrapped then
  register({}, { 'attempt', 'vote', 'latch', 'batch' })
  register({ 'no-writes' }, { 'version' })
  register({ 'allow-oom' }, { 'leave', 'renew', 'change', 'transfer', 'revoke', 'inspect', 'list', 'latch_count' })
end
