-- The granted claims of the resource in hand: one exclusive inside its state, shared and permit ones
-- in a hash beside it.

-- The hash has the truth about shared and permit holders; the state only sums it up.
function R.check_held()
  if S.held == 0 then return end
  if call('HLEN', R.side('h')) == S.held then return end
  S.held, S.permits, S.untold, S.ends, R.dirty = 0, 0, 0, 0, true
  R.held_before = 0
  for _, bytes in ipairs(call('HVALS', R.side('h'))) do
    local h = R.holder_of(bytes)
    S.held = S.held + 1
    if h.mode == PERMIT then S.permits = S.permits + h.claim.permits end
    if not h.told then S.untold = S.untold + 1 end
  end
  R.held_before = S.held
  S.waiting = call('ZCARD', R.side('w')) -- who was to be granted is in line still
  R.waiting_before = S.waiting
  if S.waiting > 0 then R.brief, R.line_done = false, false end
end

function R.find_holder(id)
  if H and H.claim.id == id then return H end
  if R.holders[id] ~= nil then return R.holders[id] or nil end
  if S.held == 0 then return nil end
  local bytes = call('HGET', R.side('h'), id)
  R.holders[id] = bytes and R.holder_of(bytes) or false
  return R.holders[id] or nil
end

function R.add_holder(h)
  R.dirty = true
  if h.mode == EXCLUSIVE then
    H = h
    return
  end
  R.holders[h.claim.id] = h
  R.holder_writes[h.claim.id] = h
  S.held = S.held + 1
  if h.mode == PERMIT then S.permits = S.permits + h.claim.permits end
  if not h.told then S.untold = S.untold + 1 end
  if S.held == 1 or h.fin < S.ends then S.ends = h.fin end
end

function R.remove_holder(h)
  R.dirty = true
  if H == h then
    H = nil
    return
  end
  R.holders[h.claim.id] = false
  R.holder_writes[h.claim.id] = false
  S.held = S.held - 1
  if h.mode == PERMIT then S.permits = S.permits - h.claim.permits end
  if not h.told then S.untold = S.untold - 1 end
end

function R.holder_changed(h)
  R.dirty = true
  if H == h then return end
  R.holder_writes[h.claim.id] = h
  if h.fin < S.ends then S.ends = h.fin end
end

function R.mark_told(h)
  if h.told then return end
  h.told = true
  if H ~= h then S.untold = S.untold - 1 end
  R.holder_changed(h)
end

-- Only who hears it has been told.
function R.tell_wanted_to(h)
  if h.told or not R.reachable(h.claim.process) then return end
  R.mark_told(h)
  R.post(h.claim.process, pack('>c1c16', 'w', h.claim.id))
end

function R.tell_wanted()
  if H then return R.tell_wanted_to(H) end
  if S.untold == 0 then return end
  for id, h in pairs(R.holders) do
    if h then R.tell_wanted_to(h) end
  end
  if R.held_before == 0 or S.untold == 0 then return end
  local found = call('HSCAN', R.side('h'), 0, 'COUNT', limit.tell)[2]
  for i = 1, #found, 2 do
    if R.holders[found[i]] == nil then
      R.holders[found[i]] = R.holder_of(found[i + 1])
      R.tell_wanted_to(R.holders[found[i]])
    end
  end
end
