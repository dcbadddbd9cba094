-- dialect=simple: compare and delete. KEYS: the name, tombstone. ARGV: value, tombstone's ms or 0.
-- Answers as leave.lua does.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' and held.err and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
local mine = held == ARGV[1]
if mine then redis.call('DEL', KEYS[1]) end
if tonumber(ARGV[2]) > 0 then redis.call('SET', KEYS[2], '1', 'PX', tonumber(ARGV[2])) end
return { mine and 1 or 2, now }
