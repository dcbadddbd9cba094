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
  local place -- where in the state they go; none: they are all of it
  if waiting == 0 and tomb <= now and not several and not (packed and holds) then
    bytes = pack('>c4ddI2c0', holds and 'hf2x' or 'hf2i', last, kept, #name, name)
  elseif brief or waiting == 0 and not several and max == 0 then
    -- In place, if it can be: every byte of a string that is made here costs time.
    local in_place = packed and not life and not buried and not refilled
    if in_place and added and not headed then
      place, bytes = #state, added
    elseif in_place and life_at and not headed then
      place, bytes = life_at, pack('>d', now + waiter_lease)
    else
      in_place = in_place and not added and not life_at and at - #name <= limit.waste
      local body = ''
      if packed and not in_place then
        if life_at then
          state = sub(state, 1, life_at) .. pack('>d', now + waiter_lease) .. sub(state, life_at + 9)
        end
        body = sub(state, at)
      elseif holds and not packed then
        whose = whose or sub(state, claim_at)
        body = pack('>I2ddc0', #whose + 16, 0, 0, whose)
      end
      if not in_place then
        if packed and rest_at > 0 then rest_at = rest_at - at + 79 + #name end
        at = 79 + #name
      end
      if not holds then fence, fin, since, offer, wanted = 0, 0, 0, 0, 0 end
      place, bytes = '4', pack('>dI4dddBBBB', last, at, fence, fin, since, EXCLUSIVE, offer, wanted, 0)
      if not in_place then
        place = nil
        bytes = 'hf2l' .. bytes
          .. pack('>dddI4I4I2c0', kept, tomb, dead, rest_at or 0, rest_from or 0, #name, name) .. body
          .. (added or '')
      end
    end
    holds = false -- it is in it
  else
    bytes = pack('>c4dddddddI4dI4dI4ddI4I4I2c0', 'hf2f', last, kept, shut, tomb, latch, side, line_side,
      held, permits, untold, ends, waiting, dead, seq, silent, max, #name, name)
  end
  if holds then
    bytes = bytes .. pack('>dddBBBBc0', fence, fin, since, EXCLUSIVE, offer, wanted, 0, whose or sub(state, claim_at))
  end
  local done
  if resting then
    -- Nobody looks there before the state says so.
    local age = state_life + math.ceil((kept - now) / 1000)
    if resting_at == 0 then
      done = redis.pcall('SET', base .. 'r' .. tail, resting, 'PX', age)
    else
      done = redis.pcall('SETRANGE', base .. 'r' .. tail, resting_at, resting)
    end
    if type(done) == 'table' and done.err then return done end
  end
  if life and packed and rest_at > 0 then call('PEXPIRE', base .. 'r' .. tail, life) end
  if not state then
    done = redis.pcall('SET', KEYS[1], bytes, 'PX', life, 'NX')
    if not done then return { -1, now, FOREIGN, 0 } end -- which MGET does not show
  elseif place then
    done = redis.pcall('SETRANGE', KEYS[1], place, bytes)
  elseif life then
    done = redis.pcall('SET', KEYS[1], bytes, 'PX', life)
  else
    done = redis.pcall('SET', KEYS[1], bytes, 'KEEPTTL')
  end
  if type(done) == 'table' and done.err then
    if grows or not string.find(done.err, 'OOM', 1, true) then return done end
    life = life or state_life + math.ceil((kept - now) / 1000)
    call('PEXPIRE', KEYS[1], life)
    if place then
      call('SETRANGE', KEYS[1], place, bytes)
    else
      call('SET', KEYS[1], bytes, 'PX', life)
    end
  end
end
if refilled and rest_at == 0 then redis.pcall('DEL', base .. 'r' .. tail) end
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
