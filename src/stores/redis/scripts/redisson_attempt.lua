-- dialect=redisson: takes an RLock, a hash of owners and counts. Asked again by the same claim it does not
-- count up. The fence is the token of RFencedLock, which has no end: a counter that began anew would be
-- smaller for its readers in Java.
-- KEYS: the name, fence, tombstone. ARGV: owner, ttl in ms, not after (0: none), how many fences.
-- Answers as attempt.lua does.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local owner, ttl, not_after = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local others = tonumber(ARGV[4]) - 1 -- fences that are kept for the process of the holder
local mine = redis.pcall('HEXISTS', KEYS[1], owner)
if type(mine) == 'table' then
  if string.find(mine.err, 'WRONGTYPE', 1, true) then return { -1, now, 8, 0 } end
  return mine
end
local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
if mine == 1 then
  redis.call('PEXPIRE', KEYS[1], ttl)
  return { 1, now, math.max(last - others, 0), ttl * 1000, 0 }
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  local rest = redis.call('PTTL', KEYS[1])
  return { 0, now, 0, rest > 0 and rest * 1000 or 1000000, '' }
end
if redis.call('EXISTS', KEYS[3]) == 1 then return { -1, now, 2, 0 } end
if not_after > 0 and now > not_after then return { -1, now, 3, 0 } end
local fence = math.max(last + 1, now)
redis.call('SET', KEYS[2], string.format('%.0f', fence + others))
redis.call('HSET', KEYS[1], owner, 1)
-- Never without an end: Redisson waits for such a lock without a limit.
local ended = redis.pcall('PEXPIRE', KEYS[1], ttl)
if type(ended) == 'table' then
  redis.call('DEL', KEYS[1])
  return ended
end
return { 1, now, fence, ttl * 1000, 0 }
