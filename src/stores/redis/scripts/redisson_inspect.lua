-- dialect=redisson: who holds. KEYS: the name, fence. {0, now, owner or '', ms left or -1, fence}
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local owners = redis.pcall('HKEYS', KEYS[1])
if owners.err then
  if string.find(owners.err, 'WRONGTYPE', 1, true) then return { -1, now, 8, 0 } end
  return owners
end
local fence = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
local held = owners[1]
return { 0, now, held or '', held and redis.call('PTTL', KEYS[1]) or 0, fence }
