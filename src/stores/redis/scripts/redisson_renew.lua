-- dialect=redisson: a longer life for an RLock, one claim. KEYS: the name, fence. ARGV: owner, ttl in ms,
-- renewed ('0': only looked at), how many fences. Answers as renew.lua does.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local mine = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(mine) == 'table' then
  if not string.find(mine.err, 'WRONGTYPE', 1, true) then return mine end
  mine = 0
end
if mine == 0 then return { now, 3, 0, 0, 0, 0 } end
local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
local fence = math.max(last - tonumber(ARGV[4]) + 1, 0)
if ARGV[3] == '0' then return { now, 1, fence, redis.call('PTTL', KEYS[1]) * 1000, 0, 0 } end
redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[2]))
return { now, 0, fence, tonumber(ARGV[2]) * 1000, 0, 0 }
