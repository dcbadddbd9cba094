-- dialect=simple: compare and expire, one claim. KEYS: the name, fence. ARGV: value, ttl in ms,
-- renewed ('0': only looked at), how many fences. Answers as renew.lua does.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' and held.err and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
if held ~= ARGV[1] then return { now, 3, 0, 0, 0, 0 } end
local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
local fence = math.max(last - tonumber(ARGV[4]) + 1, 0)
if ARGV[3] == '0' then return { now, 1, fence, redis.call('PTTL', KEYS[1]) * 1000, 0, 0 } end
redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[2]))
return { now, 0, fence, tonumber(ARGV[2]) * 1000, 0, 0 }
