-- Those who wait for the resource in hand, in the order in which they came.

function R.waiter_of(id, bytes)
  local w = R.waiters[id]
  if w == nil and bytes then
    w = { since = unpack_bytes('>d', bytes), claim = R.claim_of(sub(bytes, 9)), id = id }
    R.waiters[id] = w
  end
  return w
end

function R.find_waiter(id)
  if R.waiters[id] ~= nil then return not R.waiters[id].gone and R.waiters[id] or nil end
  if R.brief then return nil end
  return R.waiter_of(id, call('HGET', R.side('q'), id))
end

function R.cut_waiter(w)
  w.gone = true
  if w == R.joined then
    R.joined = nil
    R.put_waiters[w.id] = nil
  elseif not R.brief then
    R.cut_waiters[#R.cut_waiters + 1] = w.id
  end
  S.waiting = S.waiting - 1
  R.dirty = true
end

-- The line that is in the state.
function R.read_brief(bytes, at)
  while at <= #bytes do
    local i = S.waiting + 1
    local record
    record, at = unpack_bytes('>I2c0', bytes, at)
    local since, dead = unpack_bytes('>dd', record)
    local claim = R.claim_of(sub(record, 17))
    R.line[i] = { since = since, dead = dead, seq = i, claim = claim, id = claim.id }
    R.waiters[claim.id], S.waiting = R.line[i], i
  end
  S.seq = S.waiting
end

function R.brief_bytes()
  local all = { H and pack('>I2ddc0', #H.claim.raw + 16, 0, 0, H.claim.raw) }
  for _, w in ipairs(R.line) do
    if not w.gone then
      all[#all + 1] = pack('>I2ddc0', #w.claim.raw + 16, w.since, w.dead, w.claim.raw)
    end
  end
  return table.concat(all)
end

-- Reads on; a few at first, since mostly the head is all that matters. Who cannot be granted now costs
-- little: ten thousand of them, dead, must not keep the next one waiting.
function R.read_line()
  if R.line_done then return false end
  local ids = {}
  local page = R.line_read == 0 and 2 or (R.line_read < 16 and 8 or (R.line_read < 256 and 64 or 1000))
  if R.waiting_before > 0 then
    ids = call('ZRANGE', R.side('w'), R.line_read, R.line_read + page - 1)
  end
  if #ids > 0 then
    local records = call('HMGET', R.side('q'), unpack(ids))
    local deaths = R.silence_mark() > 0 and call('ZMSCORE', R.side('d'), unpack(ids)) or {}
    for i, id in ipairs(ids) do
      local bytes, dead = records[i], tonumber(deaths[i] or nil)
      if bytes and id ~= R.speaker and not R.waiters[id] and R.passed_over(sub(bytes, 25, 40), dead) then
        R.passed = R.passed + 1
      else
        R.read_waiter(id, bytes, dead)
      end
    end
    R.line_read = R.line_read + #ids
  end
  local alive = R.passed + (R.joined and 1 or 0)
  for _, w in ipairs(R.line) do
    if not w.gone then alive = alive + 1 end
  end
  if #ids < page then R.line_done = true end
  if R.line_done and R.joined then R.line[#R.line + 1] = R.joined end
  -- The state only counts what the set has.
  if alive > S.waiting or (R.line_done and alive < S.waiting) then
    S.waiting, R.dirty = alive, true
  end
  return #R.line > 0
end

function R.read_waiter(id, bytes, dead)
  local w = R.waiter_of(id, bytes)
  if w and not R.find_holder(id) then
    w.dead = w.dead or dead
    R.line[#R.line + 1] = w
  elseif not w or not w.gone then
    R.cut_waiters[#R.cut_waiters + 1] = id -- its record is gone, or it was granted
    R.waiters[id] = nil
    S.waiting = math.max(0, S.waiting - 1)
    R.dirty = true
  end
end

-- The i-th of the line that is still in it, as an iterator.
function R.in_line()
  local i = 0
  return function()
    repeat
      i = i + 1
      while i > #R.line do
        if R.line_done then return nil end
        R.read_line()
      end
    until not R.line[i].gone
    return R.line[i]
  end
end

function R.first_in_line()
  if R.brief then return R.in_line()() end
  local id = call('ZRANGE', R.side('w'), 0, 0)[1]
  return id and R.find_waiter(id) or R.joined
end

function R.join(claim)
  local w = { since = now, dead = now + waiter_lease, claim = claim, id = claim.id }
  R.waiters[claim.id] = w
  R.put_waiters[claim.id] = w
  R.joined = w
  S.seq = S.seq + 1
  w.seq = S.seq
  if S.waiting == 0 or now + waiter_lease < S.dead then S.dead = now + waiter_lease end
  S.waiting = S.waiting + 1
  if R.line_done then R.line[#R.line + 1] = w end
  R.dirty = true
end

function R.keep_place(w)
  R.beats[#R.beats + 1] = w.id
  w.dead = now + waiter_lease
  if R.brief then R.dirty = true end
end

-- How many are before it.
function R.place_of(w)
  if w == R.joined then return S.waiting - 1 end
  if not R.brief then return call('ZRANK', R.side('w'), w.id) or 0 end
  local before = 0
  for _, other in ipairs(R.line) do
    if other == w then break end
    if not other.gone then before = before + 1 end
  end
  return before
end
