-- The granted claims of a name: the exclusive one is in its state; shared and permit ones are in a hash, which has the
-- truth about them: the state only sums it up.

local function count_in(h, how_many)
  held = held + how_many
  if h.mode == PERMIT then permits = permits + how_many * permits_of(claim_of(h)) end
  if not h.told then untold = untold + how_many end
end

-- Counts again where the state and the hash differ: a failure may have come between them. Whoever was to be moved from
-- the queue to the hash is then in the queue.
local function check_held()
  if call('HLEN', side('h')) == held then return end
  held, permits, untold, next_end, dirty = 0, 0, 0, 0, true
  waiting = max(waiting, math.floor(call('HLEN', side('q')) / 2))
  for _, bytes in ipairs(call('HVALS', side('h'))) do count_in(hold_of(bytes, 1), 1) end
end

local function find_holder(id)
  if holder and holder.id == id then return holder end
  if held == 0 and not known then return nil end
  known = known or {}
  local h = known[id]
  if h == nil then
    local bytes = call('HGET', side('h'), id)
    h = bytes and hold_of(bytes, 1) or false
    known[id] = h
  end
  return h or nil
end

local function write_later(id, what)
  known, written = known or {}, written or {}
  known[id], written[id] = what, what
end

local function holder_changed(h)
  dirty = true
  lasts(h.fin)
  if holder == h then return end
  write_later(h.id, h)
  if h.fin < next_end then next_end = h.fin end
end

local function add_holder(h)
  if h.mode == EXCLUSIVE then
    holder = h
  else
    count_in(h, 1)
    if held == 1 then next_end = h.fin end
  end
  holder_changed(h)
end

local function remove_holder(h)
  dirty = true
  if holder == h then
    holder = nil
    return
  end
  write_later(h.id, false)
  count_in(h, -1)
end

local function mark_told(h)
  if h.told then return end
  h.told = true
  if holder ~= h then untold = untold - 1 end
  holder_changed(h)
end

-- Only a holder that hears it has been told that it is wanted.
local function tell_wanted_to(h)
  local process = process_of(claim_of(h))
  if h.told or not reachable(process) then return end
  mark_told(h)
  post(process, pack('>c1c16', 'w', h.id))
end

local function tell_wanted()
  if holder then
    if holder.since + WANTED_AFTER <= now then tell_wanted_to(holder) end
    return
  end
  if untold == 0 then return end
  local found = call('HSCAN', side('h'), 0, 'COUNT', NOTIFY_LIMIT)[2]
  for i = 1, #found, 2 do
    local h = find_holder(found[i])
    if h then tell_wanted_to(h) end
  end
end

-- Those in the hash whose time is over, found by a look at all. With many of them the next look is not due at once, so
-- that looking takes the server little of its time; until then such a hold lasts longer.
local function drop_ended_holders(ended)
  next_end, dirty = math.huge, true
  for _, bytes in ipairs(call('HVALS', side('h'))) do
    local h = hold_of(bytes, 1)
    if h.fin <= now then ended(h) elseif h.fin < next_end then next_end = h.fin end
  end
  if held > HOLDERS_AT_ONCE then next_end = max(next_end, now + LOOK_PAUSE * held) end
end

-- Before the state: it takes no memory, and if the state then fails, the holders are counted again. A hold that moves
-- between the state and the hash (`moved`) is in both meanwhile, never in neither.
local function write_holders_before()
  local over = {}
  for id, h in pairs(written) do
    if not h and id ~= moved then over[#over + 1] = id end
  end
  emptied = held_before <= #over
  paged(call, 'HDEL', side('h'), over)
  local h = moved and written[moved]
  if h then call('HSET', side('h'), moved, bytes_of(h)) end
end

local function write_holders_after()
  local puts = {}
  for id, h in pairs(written) do
    if h then puts[#puts + 1], puts[#puts + 2] = id, bytes_of(h) end
  end
  if moved and not written[moved] then try('HDEL', side('h'), moved) end -- what stays is recognised by check_held
  paged(call, 'HSET', side('h'), puts)
  if emptied and #puts > 0 then keep('h', kept_till) end -- a key that is emptied and filled again is a new one
end
