-- The granted claims of a name: the exclusive one is in its state; shared and permit ones are in a hash, which is
-- authoritative: the state only has the sums.

local function count_in(h, how_many)
  held = held + how_many
  if h.mode == PERMIT then permits = permits + how_many * permits_of(h.raw) end
  if not h.told then untold = untold + how_many end
end

-- Counts again if the state and the hash differ: a failure may have come between their writes. A claim that was to be
-- moved from the queue to the hash is then still in the queue.
local function check_held()
  if call('HLEN', side('h')) == held then return end
  held, permits, untold, next_end, dirty = 0, 0, 0, 0, true
  waiting = max(waiting, math.floor(call('HLEN', side('q')) / 2))
  for _, bytes in ipairs(call('HVALS', side('h'))) do count_in(hold_of(bytes, 1), 1) end
end

local function find_holder(id)
  if holder and holder.id == id then return holder end
  if held == 0 then return nil end
  if written and written[id] then return written[id] end
  local bytes = call('HGET', side('h'), id)
  return bytes and hold_of(bytes, 1) or nil
end

local function holder_changed(h)
  dirty = true
  if holder == h then return end
  written = written or {}
  written[h.id] = h
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

-- It is not counted any more, but it is still in the hash.
local function take_out(h)
  dirty = true
  if holder == h then
    holder = nil
    return
  end
  count_in(h, -1)
  if written then written[h.id] = nil end
end

-- Done before the state is written: it takes no memory, and if writing the state then fails, the
-- holders are counted again.
local function remove_holder(h)
  take_out(h)
  if h.mode ~= EXCLUSIVE then call('HDEL', side('h'), h.id) end
end

-- Gives the record of a hold to another id, at once: the state is the same for both. If that fails, it
-- still belongs to `from`.
local function move_in_hash(from, h)
  lift_limit()
  call('HSET', side('h'), h.id, bytes_of(h))
  local done = try('HDEL', side('h'), from)
  if type(done) == 'table' then
    try('HDEL', side('h'), h.id)
    fail(done)
  end
end

local function mark_told(h)
  if h.told then return end
  h.told = true
  if holder ~= h then untold = untold - 1 end
  holder_changed(h)
end

-- Only a reachable holder counts as notified that it is wanted.
local function tell_wanted_to(h)
  local process = process_of(h.raw)
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
  for i = 1, #found, 2 do tell_wanted_to(written and written[found[i]] or hold_of(found[i + 1], 1)) end
end

-- It was not released: the holder may still be at work, and where no fence is checked only time helps.
local function hold_ended(h)
  remove_holder(h)
  local delay = unpack_bytes('>d', h.raw, 49)
  if delay > 0 then delay_till = max(delay_till, h.fin + delay) end
  if h.offer and not h.revoked then mark = max(mark, h.since) end
  note(EXPIRED, h.raw, h)
end

-- The holds in the hash whose time is over, found by looking at all of them. With many of them the next look is not due
-- at once, so that looking takes the server little time; until then an expired hold lasts longer.
local function drop_ended_holders()
  next_end, dirty = math.huge, true
  for _, bytes in ipairs(call('HVALS', side('h'))) do
    local h = hold_of(bytes, 1)
    if h.fin <= now then hold_ended(h) elseif h.fin < next_end then next_end = h.fin end
  end
  if held > HOLDERS_AT_ONCE then next_end = max(next_end, now + LOOK_PAUSE * held) end
end

-- Called after the state is written.
local function write_holders()
  local fields = {}
  for id, h in pairs(written) do fields[#fields + 1], fields[#fields + 2] = id, bytes_of(h) end
  local added = paged('HSET', side('h'), fields)
  if added == held then keep('h', kept_till) end -- the key is new
end
