-- Writes what was decided about a mutex or a crowd, in the order and by the rules of shared/5_writing.
if gone then call('HDEL', holders, gone) end
if changed then
  local last_end = math.max(now, tomb, brief and 0 or line_side, side or 0, fin or 0)
  local life
  if last_end > kept then
    kept = last_end + 60000000 -- for some time: a new life costs more than the old one kept
    life = state_life + math.ceil((kept - now) / 1000)
  end
  local several = held and held > 0
  local bytes
  if waiting == 0 and tomb <= now and not several then
    bytes = pack('>c4ddI2c0c0', holder ~= '' and 'hf2x' or 'hf2i', last, kept, #name, name, holder)
  elseif brief or waiting == 0 and not several and max == 0 then
    bytes = pack('>c4ddddBI2c0I2c0c0', 'hf2w', last, kept, tomb, dead, waiting, #name, name, #holder, holder,
      line_bytes)
  else
    bytes = pack('>c4dddddddI4dI4dI4ddI4I4I2c0c0', 'hf2f', last, kept, shut, tomb, latch, side, line_side,
      held, permits, untold, ends, waiting, dead, seq, silent, max, #name, name, holder)
  end
  local done
  if not state then
    done = redis.pcall('SET', KEYS[1], bytes, 'PX', life, 'NX')
    if not done then return { -1, now, FOREIGN, 0 } end -- which MGET does not show
  elseif life then
    done = redis.pcall('SET', KEYS[1], bytes, 'PX', life)
  else
    done = redis.pcall('SET', KEYS[1], bytes, 'KEEPTTL')
  end
  if type(done) == 'table' and done.err then
    if grows or not string.find(done.err, 'OOM', 1, true) then return done end
    life = life or state_life + math.ceil((kept - now) / 1000)
    call('PEXPIRE', KEYS[1], life)
    call('SET', KEYS[1], bytes, 'PX', life)
  end
end
if gone then redis.pcall('ZREM', hold_ends, gone) end
if taken then
  call('ZADD', hold_ends, fin, taken)
  call('HSET', holders, taken, hold)
  if holders_till then
    call('PEXPIREAT', holders, holders_till)
    call('PEXPIREAT', hold_ends, holders_till)
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
