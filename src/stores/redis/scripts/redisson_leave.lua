-- dialect=redisson: gives an RLock back and tells those who wait, as Redisson's unlock does.
-- KEYS: the name, tombstone. ARGV: owner, tombstone's ms or 0, channel. Answers as leave.lua does.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local mine = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(mine) == 'table' then
  if not string.find(mine.err, 'WRONGTYPE', 1, true) then return mine end
  mine = 0
end
if mine == 1 then
  redis.call('PUBLISH', ARGV[3], '0')  -- first: where it is not allowed the lock stays held
  redis.call('DEL', KEYS[1])
end
-- After a deletion it is allowed without memory, too.
if tonumber(ARGV[2]) > 0 then redis.call('SET', KEYS[2], '1', 'PX', tonumber(ARGV[2])) end
return { mine == 1 and 1 or 2, now }
