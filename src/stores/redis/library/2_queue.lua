-- The claims that wait for a name, in order of arrival: one hash, with a record for each sequence number and the number
-- of each id. The state has the first number that may still wait and the last one that was given; the numbers missing
-- between them have left. So joining, leaving and handing over cost the same at any length.

local function number_field(number) return pack('>d', number) end

-- For each number, its record or false.
local function read_records(from, to)
  local fields = {}
  for number = from, to do fields[#fields + 1] = number_field(number) end
  return call('HMGET', side('q'), unpack(fields))
end

-- record: when it came, when it was last heard from, the claim.
local function waiter_of(number, bytes)
  local since, heard, id = unpack_bytes('>ddc16', bytes)
  return { number = number, since = since, heard = heard, id = id, raw = sub(bytes, 17) }
end

local function find_waiter(id)
  if waiting == 0 then return nil end
  local field = call('HGET', side('q'), id)
  local number = field and unpack_bytes('>d', field) or 0
  if number < first or number > seq then return nil end -- what a failure left there
  local bytes = call('HGET', side('q'), field)
  local w = bytes and waiter_of(number, bytes)
  return w and w.id == id and w or nil
end

-- Claims that left, or died, are removed at once: they must not be granted, whatever fails.
local function withdraw(those)
  local fields = {}
  for _, w in ipairs(those) do
    fields[#fields + 1], fields[#fields + 2] = number_field(w.number), w.id
    if w.number == first then first = first + 1 end
  end
  waiting, dirty = waiting - #those, true
  if waiting == 0 then call('DEL', side('q')) else paged('HDEL', side('q'), fields) end
end

-- A granted claim is removed after the state is written.
local function cut_waiter(w)
  cut = cut or {}
  cut[w.id] = w.number
  -- A hold in the hash is written after the state: until then its old place stays valid, and known.
  if w.number == first and mode_of(w.raw) == EXCLUSIVE then first = first + 1 end
  waiting, dirty = waiting - 1, true
end

local function join(raw)
  if waiting == 0 then first, dead, mark, cursor = seq + 1, now + WAITER_LEASE, 0, 0 end
  seq = seq + 1
  waiter = { number = seq, since = now, heard = now, id = caller, raw = raw, new = true }
  waiting, dirty = waiting + 1, true
end

-- It was heard from, so it lives for another lease.
local function keep_place(w)
  w.heard = now
  waiter = w
end

-- Calls visit with the number and the record of each waiter from this number on, in order, until it returns
-- true. The first is read alone, since usually only that matters, then more and more. Returns the number after
-- the last one it reached.
local function walk(from, visit)
  local unwritten = waiter and waiter.new and 1 or 0 -- the last
  local number, page, found = from, 1, unwritten
  local whole, limit = from == first, min(seq - unwritten, from + LOOK_LIMIT)
  while number <= limit do
    for _, record in ipairs(read_records(number, min(limit, number + page - 1))) do
      if record then
        found = found + 1
        if visit(number, record) then return number + 1 end
      elseif number == first then
        first = number + 1
      end
      number = number + 1
    end
    page = min(8 * page, PAGE)
  end
  -- The state only counts records that are there.
  if whole and number > seq - unwritten and found < waiting then waiting, dirty = found, true end
  return number
end

-- Removes the dead: some tens of thousands in a step, all of them within a few steps.
local function sweep()
  local died, next_death, from, whole = {}, now + WAITER_LEASE, max(first, cursor), cursor == 0
  cursor = walk(from, function(number, record)
    local w = waiter_of(number, record)
    if w.heard + WAITER_LEASE > now then
      next_death = min(next_death, w.heard + WAITER_LEASE)
    else
      died[#died + 1] = w
      note(WITHDRAWN, w.raw)
    end
    return number - from >= LOOK_LIMIT / 4
  end)
  withdraw(died)
  if cursor > seq then cursor, dead = 0, whole and next_death or now + WAITER_LEASE / 2 end
end

-- Called after the state is written. Returns an error reply if the new holder is still in the queue, behind others.
local function write_queue()
  if waiting == 0 then
    try('DEL', side('q')) -- any remains are behind the last number
  elseif cut then
    local fields = {}
    for id, number in pairs(cut) do fields[#fields + 1], fields[#fields + 2] = number_field(number), id end
    local done = try('HDEL', side('q'), unpack(fields))
    -- In front of the first number it does no harm; a holder in the hash removes it when it leaves.
    if type(done) == 'table' and holder and (cut[holder.id] or 0) >= first then return done end
  end
  local w = waiter
  if not w then return end
  local field, record = number_field(w.number), pack('>ddc0', w.since, w.heard, w.raw)
  if not w.new then return call('HSET', side('q'), field, record) and nil end
  call('HSET', side('q'), field, record, w.id, field)
  if waiting == 1 then keep('q', kept_till) end -- the key is new
end
