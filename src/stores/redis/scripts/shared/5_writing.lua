-- Writes what a script changed, the state first, and tells who is concerned.

-- The line goes into the state: it is short, and the lock has nothing that is rare. Not those who would be
-- granted into the hash: between the two writes they would be nowhere.
function R.fits()
  if not R.brief or S.held > 0 or S.silent > 0 or S.max > 0 or S.shut > now
    or S.latch > now then
    return false
  end
  local size = 0
  for _, w in ipairs(R.line) do
    if not w.gone then
      size = size + #w.claim.raw + 18
      if w.claim.mode ~= EXCLUSIVE or size > limit.packed then return false end
    end
  end
  return true
end

function R.shape()
  local holder = H and R.bytes_of(H) or ''
  if S.held == 0 and S.waiting == 0 and S.shut <= now and S.tomb <= now and S.latch <= now then
    return pack('>c4ddI2c0c0', H and 'hf2x' or 'hf2i', S.last, S.kept, #S.name, S.name, holder)
  end
  if R.fits() then
    return pack('>c4dI4c28dddI4I4I2c0c0', 'hf2l', S.last, 79 + #S.name, H and holder or string.rep('\0', 28),
      S.kept, S.tomb, S.dead, 0, 0, #S.name, S.name, R.brief_bytes())
  end
  return pack('>c4dddddddI4dI4dI4ddI4I4I2c0c0', 'hf2f', S.last, S.kept, S.shut, S.tomb, S.latch,
    S.side, S.line_side, S.held, S.permits, math.max(S.untold, 0), S.ends, S.waiting, S.dead, S.seq,
    S.silent, S.max, #S.name, S.name, holder)
end

function R.drop_line()
  return redis.pcall('DEL', R.side('q'), R.side('w'), R.side('d'))
end

-- The line leaves the state for keys of its own. Before the state is written, which has it until then; what
-- fails is taken back. Answers an error reply, or nil.
function R.spill(grows)
  local tickets, deaths, records = {}, {}, {}
  for _, w in ipairs(R.line) do
    if not w.gone and w ~= R.joined then
      tickets[#tickets + 1], tickets[#tickets + 2] = w.seq, w.id
      deaths[#deaths + 1], deaths[#deaths + 2] = w.dead, w.id
      records[#records + 1], records[#records + 2] = w.id, pack('>dc0', w.since, w.claim.raw)
    end
  end
  if #tickets == 0 then return end
  -- Changes nothing, but is refused where memory is out.
  local done = grows and redis.pcall('SETRANGE', R.key, '0', 'hf2')
  if type(done) == 'table' and done.err then return done end
  R.spilled = true
  done = R.drop_line() -- what a failure may have left there; takes no memory, so that the rest is let through
  for what, list in pairs({ w = tickets, d = deaths, q = records }) do
    if type(done) == 'table' and done.err then break end
    done = redis.pcall(what == 'q' and 'HSET' or 'ZADD', R.side(what), unpack(list))
  end
  if type(done) ~= 'table' or not done.err then return end
  R.drop_line()
  return done
end

-- Out of memory, nothing may grow; but what shrinks or stays must go through: once a script has
-- written, the server lets it write on, and a new end of life for a key takes no memory.
function R.save(bytes, life, grows)
  local done
  if R.existed then
    done = redis.pcall('SET', R.key, bytes, 'PX', life)
  else
    done = redis.pcall('SET', R.key, bytes, 'PX', life, 'NX')
  end
  if type(done) == 'table' and done.err then
    if grows or not string.find(done.err, 'OOM', 1, true) then return done end
    call('PEXPIRE', R.key, life)
    call('SET', R.key, bytes, 'PX', life)
  elseif not done then
    return FOREIGN -- a value of another type, which MGET does not show
  end
end

-- Lua hands over only so many arguments at once.
function R.paged(how, verb, where, list)
  local page = 1000
  for from = 1, #list, page do
    how(verb, where, unpack(list, from, math.min(#list, from + page - 1)))
  end
end
function R.call_paged(verb, where, list) R.paged(call, verb, where, list) end

-- Of what the state no longer counts: if it stays, it is recognised and taken out later.
function R.drop_paged(verb, where, list) R.paged(redis.pcall, verb, where, list) end

-- Before the state: it takes no memory, and if it fails nothing was changed. If the state then
-- fails, the holders are counted again.
function R.cut_holders()
  local gone = {}
  for id, h in pairs(R.holder_writes) do
    if not h and id ~= R.moved then gone[#gone + 1] = id end
  end
  if #gone > 0 then R.call_paged('HDEL', R.side('h'), gone) end
  return gone
end

-- A hold that moves between the state and the hash is in both meanwhile, never in neither.
function R.add_moved()
  local h = R.moved and R.holder_writes[R.moved]
  if not h then return end
  call('ZADD', R.side('e'), h.fin, R.moved)
  call('HSET', R.side('h'), R.moved, R.bytes_of(h))
end

function R.cut_moved()
  if not R.moved or R.holder_writes[R.moved] then return end
  redis.pcall('HDEL', R.side('h'), R.moved)
  redis.pcall('ZREM', R.side('e'), R.moved)
end

function R.write_holders(gone, till)
  local puts, ends = {}, {}
  for id, h in pairs(R.holder_writes) do
    if h then
      puts[#puts + 1] = id
      puts[#puts + 1] = R.bytes_of(h)
      ends[#ends + 1] = h.fin
      ends[#ends + 1] = id
    end
  end
  if #gone > 0 then R.drop_paged('ZREM', R.side('e'), gone) end
  if #puts == 0 then return end
  -- An end without a holder is dropped when it comes; a holder without an end would never end.
  R.call_paged('ZADD', R.side('e'), ends)
  R.call_paged('HSET', R.side('h'), puts)
  if till then
    call('PEXPIREAT', R.side('h'), till)
    call('PEXPIREAT', R.side('e'), till)
  end
end

function R.write_line(till)
  if #R.cut_waiters > 0 then
    R.drop_paged('ZREM', R.side('w'), R.cut_waiters)
    R.drop_paged('ZREM', R.side('d'), R.cut_waiters)
    R.drop_paged('HDEL', R.side('q'), R.cut_waiters)
  end
  if S.waiting == 0 then
    if not R.brief then R.drop_line() end
    return
  end
  if R.mark and R.mark > 0 and R.dirty then call('HSET', R.side('q'), 'm', pack('>d', R.mark)) end
  for id, w in pairs(R.put_waiters) do
    call('ZADD', R.side('w'), w.seq, id)
    call('ZADD', R.side('d'), now + waiter_lease, id)
    call('HSET', R.side('q'), id, pack('>d', w.since) .. w.claim.raw)
  end
  for _, id in ipairs(R.beats) do
    if not R.waiters[id].gone then
      local done = redis.pcall('ZADD', R.side('d'), 'XX', now + waiter_lease, id)
      if type(done) == 'table' and done.err then -- out of memory: as in save()
        call('PEXPIREAT', R.side('d'), math.floor(S.line_side / 1000))
        call('ZADD', R.side('d'), 'XX', now + waiter_lease, id)
      end
    end
  end
  if till then
    call('PEXPIREAT', R.side('w'), till)
    call('PEXPIREAT', R.side('d'), till)
    call('PEXPIREAT', R.side('q'), till)
  end
end

-- Until when keys beside the state must live, if that is to be told to the server now: they outlive
-- what is in them, but not for ever.
function R.life_beside(known, fresh, longest)
  local need = longest + 60000000
  if not fresh and known >= now + need then return known end
  return math.max(known, now + 2 * need), math.floor(math.max(known, now + 2 * need) / 1000)
end

function R.holders_end()
  local longest, cut = 0, 0
  for _, h in pairs(R.holder_writes) do
    if h then
      longest = math.max(longest, h.claim.ttl)
    else
      cut = cut + 1
    end
  end
  if longest == 0 then return end
  local till
  -- A key that is emptied and filled again is a new one.
  S.side, till = R.life_beside(S.side, R.held_before <= cut, longest)
  return till
end

function R.line_end()
  if not next(R.put_waiters) and #R.beats == 0 and not R.spilled then return end
  local till
  S.line_side, till = R.life_beside(S.line_side, R.brief, waiter_lease)
  if till then R.dirty = true end
  return till
end

function R.deliver()
  local verb = sharded and 'SPUBLISH' or 'PUBLISH'
  for _, process in ipairs(R.letters_order) do
    redis.pcall(verb, R.base .. 'c:' .. process, table.concat(R.letters[process]))
  end
  if #R.events > 0 then
    redis.pcall(verb, R.base .. 'e',
      pack('>I2c0I2c0', #R.tail, R.tail, #S.name, S.name) .. table.concat(R.events))
  end
end

-- Writes what was changed, then tells. grows: refused where memory is out, and nothing is changed.
-- Answers an error reply or a number of one, or nil.
function R.commit(grows)
  if S.waiting == 0 then S.silent = 0 end
  local brief = R.fits()
  local holders_till = R.holders_end()
  local gone = R.cut_holders()
  R.add_moved()
  if R.brief and not brief then
    local problem = R.spill(grows)
    if problem then return problem end
  end
  local line_till = not brief and R.line_end()
  if R.dirty or R.tombstone then
    S.kept = math.max(now, S.shut, S.tomb, S.latch, S.side, S.line_side, H and H.fin or 0)
    local problem = R.save(R.shape(), state_life + math.ceil((S.kept - now) / 1000), grows)
    if problem then
      if R.spilled then R.drop_line() end
      return problem
    end
  end
  if R.rested and R.dirty then redis.pcall('DEL', R.side('r')) end
  R.cut_moved()
  R.write_holders(gone, holders_till)
  if not brief and (R.dirty or #R.beats > 0) then R.write_line(line_till) end
  if R.tombstone then
    local key_of_tombstones = R.side('t')
    call('ZREMRANGEBYSCORE', key_of_tombstones, '-inf', now)
    call('ZADD', key_of_tombstones, R.tombstone[2], R.tombstone[1])
    call('PEXPIREAT', key_of_tombstones, math.ceil(S.tomb / 1000))
  end
  R.deliver()
end

-- The answer to a verb that cannot be: a reply of an error as it is, or {-1, now, why, number}.
function R.refusal(why, number)
  if type(why) == 'table' then return why end
  return { -1, now, why, number or 0 }
end
