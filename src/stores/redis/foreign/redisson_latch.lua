-- dialect=redisson: an RCountDownLatch, a number without an expiry that is deleted at zero. A missing one is open.
-- KEYS: the name, ids that were counted since it was set, ids that were known in the last minute. ARGV: the verb, then
-- count, id, ms for which the former are kept, channel.
local MINUTE = 60000 -- milliseconds
local verb, id = ARGV[1], ARGV[3]
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local known = redis.pcall('GET', KEYS[1])
if type(known) == 'table' and not string.find(known.err, 'WRONGTYPE', 1, true) then return known end
local count = tonumber(known or 0)
if not count then return { -1, now, 8, 0 } end -- a lock, or text
count = math.max(count, 0)
if verb == 'count' or redis.call('SISMEMBER', KEYS[2], id) == 1 then return { 0, now, count } end
-- A late request must not count after the latch was set again.
if tonumber(redis.call('ZSCORE', KEYS[3], id) or 0) > now then return { 0, now, count } end
local function remember()
  redis.pcall('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
  local done = redis.pcall('ZADD', KEYS[3], now + MINUTE * 1000, id)
  return type(done) == 'table' and done or redis.pcall('PEXPIRE', KEYS[3], MINUTE)
end

if verb == 'down' and count == 0 then
  remember()
  return { 0, now, 0 }
end
if verb == 'set' and count > 0 then return { -1, now, 15, count } end

-- First the marks that it was counted, taken back if the rest fails.
local left = verb == 'set' and tonumber(ARGV[2]) or count - tonumber(ARGV[2])
if verb == 'set' then redis.call('DEL', KEYS[2]) end
redis.call('SADD', KEYS[2], id)
local done = remember()
if type(done) ~= 'table' then done = redis.pcall('PEXPIRE', KEYS[2], tonumber(ARGV[4])) end
if type(done) ~= 'table' and (verb == 'set' or left <= 0) then
  done = redis.pcall('PUBLISH', ARGV[5], verb == 'set' and '1' or '0')
end
if type(done) ~= 'table' then
  if verb == 'set' then
    done = redis.pcall('SET', KEYS[1], ARGV[2])
  elseif left > 0 then
    done = redis.pcall('DECRBY', KEYS[1], ARGV[2])
  else
    done = redis.pcall('DEL', KEYS[1])
  end
end
if type(done) == 'table' and done.err then
  redis.call('SREM', KEYS[2], id)
  redis.call('ZREM', KEYS[3], id)
  return done
end
return { 0, now, math.max(left, 0) }
