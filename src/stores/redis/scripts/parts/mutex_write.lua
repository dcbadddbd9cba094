-- Writes what was decided about a mutex, in the order and by the rules of shared/5_writing.
if changed then
  local bytes
  if waiting == 0 and tomb <= now then
    bytes = pack('>c4dI2c0', holder ~= '' and 'hf1x' or 'hf1i', last, #name, name) .. holder
  else
    bytes = pack('>c4ddddddI4dI4dI4ddI4I4I2c0I2c0', 'hf1f', last, shut, tomb, latch, side, line_side,
      held, permits, untold, ends, waiting, dead, seq, silent, max, 0, '', #name, name) .. holder
  end
  local last_end = math.max(now, tomb, side, line_side, fin or 0)
  local life = last_end > kept_until and state_life + math.ceil((last_end - now) / 1000)
  local done
  if life then
    done = redis.pcall('SET', KEYS[1], bytes, 'PX', life)
  else
    done = redis.pcall('SET', KEYS[1], bytes, 'KEEPTTL') -- it lives long enough: a new life costs more
  end
  if type(done) == 'table' and done.err then
    if grows or not string.find(done.err, 'OOM', 1, true) then return done end
    life = life or state_life + math.ceil((kept_until - now) / 1000)
    call('PEXPIRE', KEYS[1], life)
    call('SET', KEYS[1], bytes, 'PX', life)
  end
end
if cut and waiting == 0 then
  redis.pcall('DEL', records, line, deaths)
elseif cut then
  redis.pcall('ZREM', line, cut)
  redis.pcall('ZREM', deaths, cut)
  redis.pcall('HDEL', records, cut)
elseif joined then
  call('ZADD', line, seq, joined)
  call('ZADD', deaths, now + waiter_lease, joined)
  call('HSET', records, joined, pack('>d', now) .. raw)
elseif beat then
  local done = redis.pcall('ZADD', deaths, 'XX', now + waiter_lease, beat)
  if type(done) == 'table' and done.err then
    call('PEXPIREAT', deaths, math.floor(line_side / 1000))
    call('ZADD', deaths, 'XX', now + waiter_lease, beat)
  end
end
if till then
  call('PEXPIREAT', line, till)
  call('PEXPIREAT', deaths, till)
  call('PEXPIREAT', records, till)
end
if buried then
  local tombs = base .. 't' .. tail
  call('ZREMRANGEBYSCORE', tombs, '-inf', now)
  call('ZADD', tombs, buried, sub(raw, 1, 16))
  call('PEXPIREAT', tombs, math.ceil(tomb / 1000))
end
if letter then redis.pcall(sharded and 'SPUBLISH' or 'PUBLISH', channel, letter) end
