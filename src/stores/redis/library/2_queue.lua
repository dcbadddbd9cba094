-- The claims that wait for a name, in the order in which they came: one hash, with a record for each sequence number
-- and the number of each id. The state has the first number that may still wait and the last that was given; what is
-- missing between them has left. So joining, leaving and handing over cost the same at any length.

local function number_field(number) return pack('>d', number) end

-- Of each number the record, or false.
local function read_records(from, to)
  local fields = {}
  for number = from, to do fields[#fields + 1] = number_field(number) end
  return call('HMGET', side('q'), unpack(fields))
end

-- record: when it came, when it was last heard, the claim.
local function waiter_of(number, bytes)
  local since, heard, id = unpack_bytes('>ddc16', bytes)
  return { number = number, since = since, heard = heard, id = id, raw = sub(bytes, 17) }
end

local function find_waiter(id)
  if joined and joined.id == id then return joined end
  if waiting == 0 or gone and gone[id] then return nil end
  local field = call('HGET', side('q'), id)
  local number = field and unpack_bytes('>d', field) or 0
  if number < first or number > seq then return nil end -- what a failure left there
  local bytes = call('HGET', side('q'), field)
  local w = bytes and waiter_of(number, bytes)
  return w and w.id == id and w or nil
end

-- It is out: `left` by itself, or dead, else granted.
local function cut_waiter(w, left)
  gone = gone or {}
  gone[w.id] = true
  if w == joined then
    joined = nil
  else
    local list = left and withdrawn or not left and cut or {}
    list[#list + 1], list[#list + 2] = number_field(w.number), w.id
    if left then withdrawn = list else cut = list end
  end
  -- A hold in the hash is written after the state: until then its place is where it was, and known.
  if not left and mode_of(w.raw) ~= EXCLUSIVE then
    to_hash = true
  elseif w.number == first then
    first = first + 1
  end
  waiting, dirty = waiting - 1, true
end

local function join(raw)
  if waiting == 0 then first, dead, mark, cursor = seq + 1, now + WAITER_LEASE, 0, 0 end
  seq = seq + 1
  if gone then gone[caller] = nil end -- it had died, and is back
  joined = { number = seq, since = now, heard = now, id = caller, raw = raw }
  waiting, dirty = waiting + 1, true
  lasts(now + WAITER_LEASE)
end

-- It was heard, so it lives for another lease.
local function keep_place(w)
  w.heard = now
  lasts(now + WAITER_LEASE)
  if w ~= joined then beat = w end
end

-- An offer that was not taken up was made to a process that is silent: dead, or stopped. Others may be as silent, and
-- each would cost the queue another offer. So from then on everybody who has not been heard since that offer was made
-- is passed over, with its place kept, until it is heard: the mark.
local function passed_over(process, heard) return mark > 0 and heard <= mark or not reachable(process) end

-- Reads on in the queue; the first alone, since mostly that is all that matters, then more and more. Waiters that are
-- passed over are left out, and cost little: ten thousand dead ones must not keep a live one waiting. False: that was
-- all.
local function read_queue()
  if not queue then queue, next_number, alive, queue_end = {}, first, 0, joined and seq - 1 or seq end
  local read = next_number - first
  if next_number > queue_end or read > LOOK_LIMIT then
    if queue_read then return false end
    queue_read = true
    -- The state only counts what is there.
    if next_number > queue_end and not joined and alive < waiting then waiting, dirty = alive, true end
    queue[#queue + 1] = joined
    return joined ~= nil
  end
  local count = min(queue_end - next_number, read == 0 and 0 or read < 16 and 7 or read < 256 and 63 or PAGE - 1) + 1
  local found = read_records(next_number, next_number + count - 1)
  for i = 1, count do
    local bytes = found[i]
    if not bytes then
      if alive == 0 then left_gap = next_number + i end
    else
      local heard, id, process = unpack_bytes('>dc16c16', bytes, 9)
      if not (gone and gone[id]) then
        alive = alive + 1
        if id == caller or not passed_over(process, heard) then
          queue[#queue + 1] = waiter_of(next_number + i - 1, bytes)
        end
      end
    end
  end
  next_number = next_number + count
  return true
end

-- Takes out the dead: some tens of thousands in a step, all of them within a few.
local function sweep()
  local looked, next_death, whole = 0, now + WAITER_LEASE, cursor == 0
  repeat
    local page = call('HSCAN', side('q'), string.format('%.0f', cursor), 'COUNT', PAGE)
    cursor = tonumber(page[1])
    local found = page[2]
    for i = 1, #found, 2 do
      if #found[i] == 8 then
        local w = waiter_of(unpack_bytes('>d', found[i]), found[i + 1])
        if w.heard + WAITER_LEASE > now then
          next_death = min(next_death, w.heard + WAITER_LEASE)
        elseif w.number >= first and not (gone and gone[w.id]) then
          cut_waiter(w, true)
          note(WITHDRAWN, w.raw)
        end
      end
    end
    looked = looked + #found / 2
  until cursor == 0 or looked > LOOK_LIMIT / 4
  dirty = true
  if cursor == 0 then dead = whole and next_death or now + WAITER_LEASE / 2 end
end

-- Answers an error reply where the new holder is still in the queue, behind others.
local function write_queue_after()
  if waiting == 0 then
    try('DEL', side('q')) -- what stays is behind the last number
  elseif cut then
    local problem = paged(try, 'HDEL', side('q'), cut)
    -- In front of the first number it does no harm; a holder in the hash takes it along when it leaves.
    if problem and not to_hash and unpack_bytes('>d', cut[1]) >= first then return problem end
  end
  local w = joined or beat
  if not w or gone and gone[w.id] then return end
  local field, record = number_field(w.number), pack('>ddc0', w.since, w.heard, w.raw)
  if w ~= joined then return call('HSET', side('q'), field, record) and nil end
  call('HSET', side('q'), field, record, w.id, field)
  if w.number == first then keep('q', kept_till) end
end
