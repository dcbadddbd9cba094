-- dialect=redisson: an RPermitExpirableSemaphore, the number of free permits, and beside it the others: 16 bytes each,
-- and when each ends, in ms since 1970. A permit that has ended is free for the client that looks first. Redisson's
-- clients use their own clocks, we use the server's. ARGV: the verb, the id of the claim, then what the verb takes.
-- KEYS: the name, then those of the verb. Answers are those of the library's verbs.
local verb, id, name = ARGV[1], ARGV[2], KEYS[1]
local ends = (string.find(name, '{', 1, true) and name or '{' .. name .. '}') .. ':timeout'
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local now_ms = math.floor(now / 1000)
local free = redis.pcall('GET', name)
local foreign = type(free) == 'table' or (free and not tonumber(free))
if type(free) == 'table' and not string.find(free.err, 'WRONGTYPE', 1, true) then return free end

local function short(text)
  return string.sub(redis.sha1hex(text), 1, 16)
end

-- The first permit has the claim's id, the others one made from it.
local function permit(i)
  return i == 1 and id or short(id .. i)
end

-- Which of so many permits it holds, when the first of them ends, and whether one was revoked: a safe revocation gives
-- it another id, so that neither side prolongs it any more.
local function held(count)
  local found, first, revoked = {}, nil, false
  for i = 1, foreign and 0 or count do
    local each = permit(i)
    local over = redis.call('ZSCORE', ends, each)
    if not over then
      each = short(each .. ':revoked')
      over = redis.call('ZSCORE', ends, each)
      revoked = revoked or over ~= false
    end
    if over then
      found[#found + 1] = each
      first = math.min(first or tonumber(over), tonumber(over))
    end
  end
  return found, first, revoked
end

-- Published first: if that is not allowed, they stay held. They also do if an error is returned.
local function give_back(permits, channel)
  if #permits == 0 then return nil end
  redis.call('PUBLISH', channel, string.format('%.0f', (tonumber(free) or 0) + #permits))
  free = redis.call('INCRBY', name, #permits)
  local removed = redis.pcall('ZREM', ends, unpack(permits))
  if type(removed) ~= 'table' then return nil end
  redis.call('DECRBY', name, #permits)
  return removed
end

local function prolong(permits, ttl)
  for _, each in ipairs(permits) do redis.call('ZADD', ends, now_ms + ttl, each) end
end

-- KEYS: and the tombstone. ARGV: tombstone's ms or 0; 'revoke': what it holds stays, and is not prolonged;
-- channel, how many permits.
if verb == 'leave' then
  local mine, first, revoked = held(tonumber(ARGV[6]))
  if ARGV[4] ~= 'revoke' then
    local failed = give_back(mine, ARGV[5])
    if failed then return failed end
  elseif mine[1] and not revoked then
    redis.call('ZADD', ends, first, short(id .. ':revoked'))
    redis.call('ZREM', ends, id)
  end
  -- After a deletion this is allowed even without memory.
  if tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[2], '1', 'PX', tonumber(ARGV[3])) end
  return { #mine > 0 and 1 or 2, now }
end

-- One claim. KEYS: and the fence. ARGV: ttl in ms, renewed ('0': only looks), two for others,
-- channel, how many permits.
if verb == 'renew' then
  local mine, first, revoked = held(tonumber(ARGV[8]))
  if #mine < tonumber(ARGV[8]) then -- another client has ended one, by its clock: the rest is useless
    return give_back(mine, ARGV[7]) or { now, 3, 0, 0, 0, 0 }
  end
  if ARGV[4] == '0' or revoked then return { now, 1, 0, math.max(first - now_ms, 0) * 1000, 0, 0 } end
  prolong(mine, tonumber(ARGV[3]))
  return { now, 0, 0, tonumber(ARGV[3]) * 1000, 0, 0 }
end

-- An attempt. A repetition by the same claim takes no more. KEYS: and the fence, the tombstone. ARGV: ttl in ms, not
-- after (0: none), how many fences, one for others, channel, two for others, how many permits, how many there are: set
-- by the first client, as by Redisson's trySetPermits.
if foreign then return { -1, now, 8, 0 } end
local ttl, not_after, block = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local channel, count, max = ARGV[7], tonumber(ARGV[10]), tonumber(ARGV[11])
local mine, first, revoked = held(count)
if #mine < count then
  local failed = give_back(mine, channel)
    or give_back(redis.call('ZRANGEBYSCORE', ends, '-inf', now_ms, 'LIMIT', 0, 1000), channel)
  if failed then return failed end
  local left = tonumber(free or max)
  local all = left + redis.call('ZCARD', ends)
  if all ~= max then return { -1, now, 5, all } end
  if left < count then
    local rest = tonumber(redis.call('ZRANGE', ends, 0, 0, 'WITHSCORES')[2] or 0) - now_ms
    return { 0, now, 0, math.max(math.min(rest, 1000), 1) * 1000, '' }
  end
  if redis.call('EXISTS', KEYS[3]) == 1 then return { -1, now, 2, 0 } end
  if not_after > 0 and now > not_after then return { -1, now, 3, 0 } end
  for i = 1, count do mine[i] = permit(i) end
  prolong(mine, ttl) -- first, and taken back if the rest is not allowed: no permit is lost
  local taken = redis.pcall('SET', name, string.format('%.0f', left - count), 'KEEPTTL')
  if taken.err then
    redis.call('ZREM', ends, unpack(mine))
    return taken
  end
  local life = redis.call('PTTL', name)
  if life > 0 then redis.call('PEXPIRE', ends, life) end
elseif revoked then
  ttl = math.max(first - now_ms, 0)
else
  prolong(mine, ttl)
end
local fence = math.max((tonumber(redis.call('GET', KEYS[2]) or 0) or 0) + 1, now)
redis.call('SET', KEYS[2], string.format('%.0f', fence + block - 1))
return { 1, now, fence, ttl * 1000, 0 }
