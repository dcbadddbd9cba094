-- A count-down latch: set, down, read.
-- KEYS: state, observed marker. ARGV: 's', 'd' or 'r'; count; id; life; name.
-- {0, now, count}, count -1: unset; {-1, now, why, number}: 14 in use as a lock, 15 it is set,
-- 16 it is unset.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', KEYS[1], KEYS[2])
local state, observed = found[1], found[2]
local verb, amount, id, life = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

--@part settings
--@shared

local remembered = 60000 -- milliseconds: ids of an earlier count
local generations = 8 -- of counts whose ids are looked at

if not state and verb == 'r' then
  if redis.call('EXISTS', KEYS[1]) == 1 then return R.refusal(FOREIGN) end
  return { 0, now, -1 }
end
local why = R.load(KEYS[1], state, ARGV[5])
if why then return R.refusal(why) end
R.promote()
if H or S.held > 0 or S.waiting > 0 then
  why = R.commit()
  return R.refusal(why or 14)
end

local meta = R.side('l')
local alive = S.latch > now
local kept = alive and call('HMGET', meta, 'count', 'generation') or {}
local count, generation = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
alive = alive and kept[1] and true or false
if verb == 'r' then return { 0, now, alive and count or -1 } end
if verb == 'd' and not alive then return R.refusal(16) end

local function ids_of(which)
  return R.side('k') .. ':' .. string.format('%.0f', which)
end
local function known()
  for which = generation, math.max(1, generation - generations), -1 do
    if call('SISMEMBER', ids_of(which), id) == 1 then return true end
  end
  return false
end
local repeated = known()
if alive and repeated then return { 0, now, count } end
if verb == 's' and alive and count > 0 then return R.refusal(15, count) end

-- A down at zero changes nothing, but must not count on the next one.
local anew = verb == 's' or count > 0
local before = generation
if verb == 's' then
  generation = generation + 1
  count = amount
else
  count = math.max(0, count - amount)
end
-- The id, then the count, then the state, which makes it known: a failure on the way leaves it as it
-- was, or counted.
call('SADD', ids_of(generation), id)
local done = redis.pcall('HSET', meta, 'count', count, 'generation', generation)
if type(done) == 'table' and done.err then
  call('SREM', ids_of(generation), id)
  return done
end
if anew then S.latch, R.dirty = now + life, true end
local fin = math.ceil(S.latch / 1000)
if verb == 's' and before > 0 then call('PEXPIRE', ids_of(before), remembered) end
call('PEXPIREAT', meta, fin)
call('PEXPIREAT', ids_of(generation), fin)
why = R.commit(true)
if why then return R.refusal(why) end
if anew then redis.pcall(sharded and 'SPUBLISH' or 'PUBLISH', R.base .. 'l', R.tail) end
return { 0, now, count }
