-- The granted claims of the resource in hand: one exclusive inside its state, shared and permit ones
-- in a hash beside it.

-- The hash has the truth about shared and permit holders; the state only sums it up.
local function check_held()
  if S.held == 0 then return end
  if call('HLEN', side('h')) == S.held then return end
  S.held, S.permits, S.untold, S.ends, dirty = 0, 0, 0, 0, true
  held_before = 0
  for _, bytes in ipairs(call('HVALS', side('h'))) do
    local h = holder_of(bytes)
    S.held = S.held + 1
    if h.mode == PERMIT then S.permits = S.permits + h.claim.permits end
    if not h.told then S.untold = S.untold + 1 end
  end
  held_before = S.held
  S.waiting = call('ZCARD', side('w')) -- who was to be granted is in line still
  waiting_before = S.waiting
end

local function find_holder(id)
  if H and H.claim.id == id then return H end
  if holders[id] ~= nil then return holders[id] or nil end
  if S.held == 0 then return nil end
  local bytes = call('HGET', side('h'), id)
  holders[id] = bytes and holder_of(bytes) or false
  return holders[id] or nil
end

local function add_holder(h)
  dirty = true
  if h.mode == EXCLUSIVE then
    H = h
    return
  end
  holders[h.claim.id] = h
  holder_writes[h.claim.id] = h
  S.held = S.held + 1
  if h.mode == PERMIT then S.permits = S.permits + h.claim.permits end
  if not h.told then S.untold = S.untold + 1 end
  if S.held == 1 or h.fin < S.ends then S.ends = h.fin end
end

local function remove_holder(h)
  dirty = true
  if H == h then
    H = nil
    return
  end
  holders[h.claim.id] = false
  holder_writes[h.claim.id] = false
  S.held = S.held - 1
  if h.mode == PERMIT then S.permits = S.permits - h.claim.permits end
  if not h.told then S.untold = S.untold - 1 end
end

local function holder_changed(h)
  dirty = true
  if H == h then return end
  holder_writes[h.claim.id] = h
  if h.fin < S.ends then S.ends = h.fin end
end

local function mark_told(h)
  if h.told then return end
  h.told = true
  if H ~= h then S.untold = S.untold - 1 end
  holder_changed(h)
end

-- Only who hears it has been told.
local function tell_wanted_to(h)
  if h.told or not reachable(h.claim.process) then return end
  mark_told(h)
  post(h.claim.process, pack('>c1c16', 'w', h.claim.id))
end

local function tell_wanted()
  if H then return tell_wanted_to(H) end
  if S.untold == 0 then return end
  for id, h in pairs(holders) do
    if h then tell_wanted_to(h) end
  end
  if held_before == 0 or S.untold == 0 then return end
  local found = call('HSCAN', side('h'), 0, 'COUNT', limit.tell)[2]
  for i = 1, #found, 2 do
    if holders[found[i]] == nil then
      holders[found[i]] = holder_of(found[i + 1])
      tell_wanted_to(holders[found[i]])
    end
  end
end
