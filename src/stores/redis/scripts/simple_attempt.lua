-- dialect=simple: SET NX PX, as redis-py, redsync and others have it; the fence beside it is ours.
-- KEYS: the name, fence, tombstone. ARGV: value, ttl in ms, not after (0: none), how many fences.
-- Answers as attempt.lua does.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local value, ttl, not_after = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local others = tonumber(ARGV[4]) - 1 -- fences that are kept for the process of the holder
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' and held.err then
  if string.find(held.err, 'WRONGTYPE', 1, true) then return { -1, now, 8, 0 } end
  return held
end
local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
if held == value then
  redis.call('PEXPIRE', KEYS[1], ttl)
  return { 1, now, math.max(last - others, 0), ttl * 1000, 0 }
end
if held then
  local rest = redis.call('PTTL', KEYS[1])
  return { 0, now, 0, rest > 0 and rest * 1000 or 1000000, '' }
end
if redis.call('EXISTS', KEYS[3]) == 1 then return { -1, now, 2, 0 } end
if not_after > 0 and now > not_after then return { -1, now, 3, 0 } end
local fence = math.max(last + 1, now)
redis.call('SET', KEYS[2], string.format('%.0f', fence + others), 'PX', 86400000 + ttl)
redis.call('SET', KEYS[1], value, 'NX', 'PX', ttl)
return { 1, now, fence, ttl * 1000, 0 }
