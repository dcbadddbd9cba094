-- Those who wait for the resource in hand, in the order in which they came.

local function waiter_of(id, bytes)
  local w = waiters[id]
  if w == nil and bytes then
    w = { since = unpack_bytes('>d', bytes), claim = claim_of(sub(bytes, 9)), id = id }
    waiters[id] = w
  end
  return w
end

local function find_waiter(id)
  if waiters[id] ~= nil then return not waiters[id].gone and waiters[id] or nil end
  if waiting_before == 0 then return nil end
  return waiter_of(id, call('HGET', side('q'), id))
end

local function cut_waiter(w)
  w.gone = true
  if w == joined then
    joined = nil
    put_waiters[w.id] = nil
  else
    cut_waiters[#cut_waiters + 1] = w.id
  end
  S.waiting = S.waiting - 1
  dirty = true
end

-- Reads on; a few at first, since mostly the head is all that matters.
local function read_line()
  if line_done then return false end
  local ids = {}
  local page = line_read == 0 and 2 or (line_read < 16 and 8 or 64)
  if waiting_before > 0 and line_read < limit.line then
    ids = call('ZRANGE', side('w'), line_read, line_read + page - 1)
  end
  if #ids > 0 then
    local records = call('HMGET', side('q'), unpack(ids))
    for i, id in ipairs(ids) do
      local w = waiter_of(id, records[i])
      if w and not find_holder(id) then
        line[#line + 1] = w
      elseif not w or not w.gone then
        cut_waiters[#cut_waiters + 1] = id -- its record is gone, or it was granted
        waiters[id] = nil
        S.waiting = math.max(0, S.waiting - 1)
        dirty = true
      end
    end
    line_read = line_read + #ids
  end
  local alive = 0
  for _, w in ipairs(line) do
    if not w.gone then alive = alive + 1 end
  end
  if joined then alive = alive + 1 end
  if #ids < page then line_done = true end
  if line_done and joined and line_read < limit.line then line[#line + 1] = joined end
  -- The state only counts what the set has.
  if alive > S.waiting or (line_done and line_read < limit.line and alive < S.waiting) then
    S.waiting, dirty = alive, true
  end
  return #line > 0
end

-- The i-th of the line that is still in it, as an iterator.
local function in_line()
  local i = 0
  return function()
    repeat
      i = i + 1
      while i > #line do
        if line_done then return nil end
        read_line()
      end
    until not line[i].gone
    return line[i]
  end
end

local function first_in_line()
  return in_line()()
end

local function join(claim)
  local w = { since = now, claim = claim, id = claim.id }
  waiters[claim.id] = w
  put_waiters[claim.id] = w
  joined = w
  S.seq = S.seq + 1
  w.seq = S.seq
  if S.waiting == 0 or now + waiter_lease < S.dead then S.dead = now + waiter_lease end
  S.waiting = S.waiting + 1
  if line_done then line[#line + 1] = w end
  dirty = true
end

local function keep_place(w)
  beats[#beats + 1] = w.id
end
