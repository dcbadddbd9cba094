-- The verbs. Each is one atomic step, and idempotent by the claim's id.

-- Does the claim have a tombstone?
local function left_behind(id)
  local till = tombs_till > now and call('ZSCORE', side('t'), id)
  return till and tonumber(till) > now
end

-- Why a new claim cannot be placed, or nil. idle: nobody holds or waits.
local function objection(raw, mode, idle)
  if left_behind(caller) then return REFUSED.left_before end
  local not_after = unpack_bytes('>d', raw, 33)
  if not_after > 0 and now > not_after then return REFUSED.too_late end
  local all = 0
  if mode == PERMIT then
    local amount
    amount, all = permits_of(raw)
    if amount == 0 or amount > all then return REFUSED.bad_permits end
  end
  if not idle then
    if (all == 0) ~= (most == 0) then return REFUSED.other_kind end
    if all ~= most then return REFUSED.other_max, most end
    if max(held, waiting) >= CLAIMS_LIMIT then return REFUSED.too_many end
  end
  most = all
end

-- The caller's state: its hold, prolonged, or nil and its place in the queue, kept, or nil.
local function find_caller()
  promote()
  local h = find_holder(caller)
  if h then
    prolong(h)
    return h
  end
  local w = find_waiter(caller)
  if w then
    keep_place(w)
    tell_wanted()
  end
  return nil, w
end

-- Places the claim if it is new, else finds its state: returns the same as find_caller.
local function place(raw, proposed)
  caller = id_of(raw)
  if latch_till > now then refuse(REFUSED.in_use_as_latch) end
  if holder or held > 0 or waiting > 0 then
    local h, w = find_caller()
    if h or w then return h, w end
  end
  local mode, idle = mode_of(raw), not holder and held == 0 and waiting == 0
  local why, number = objection(raw, mode, idle)
  if why then commit_and_refuse(why, number) end
  if idle and delay_till <= now or may_take(raw) then return grant(raw, caller, mode, proposed) end
  if not is_queued(raw) then return nil end
  join(raw)
  note(QUEUED, raw)
  if holder then tell_wanted() end
  return nil, waiter
end

local RESTART_MARK = 'holdfast:born'

-- As a member of a quorum: for how long this server's votes do not count, because it lost its state, and its run id.
-- The mark is lost with the data, and names the run of the server that wrote it, since a restart may have brought back
-- old data; it may be false. longest: ttl; keeps: '1' if a restart loses nothing.
local function counts_after(mark_found, longest, keeps)
  local run = string.match(call('INFO', 'server'), 'run_id:(%w+)') or ''
  local since, of = string.match(mark_found or '', '^(%d+) (%w*)$')
  since = tonumber(since)
  if not since or (of ~= run and keeps ~= '1') then
    since = now
    call('SET', RESTART_MARK, string.format('%.0f %s', now, run))
  end
  return max(0, since + tonumber(longest) - now), run
end

-- A number: granted; it is both now and the fence, the ttl is the claim's, no flags (a table takes the server as long
-- as a command); {1, now, fence, ttl, flags}: granted; a string with now, recheck after, queued and blocker: blocked.
local function attempt(key, bytes, watched, raw, long_name, proposed)
  take(key, bytes, watched, long_name)
  local h, w = place(raw, proposed)
  if not h then
    -- Computed before the writes, which change what is read.
    local blocked = pack('>ddBc0', now, recheck_after(w), w and 1 or 0, blocker_of())
    commit(true)
    return blocked
  end
  local ttl, flags = grant_of(h)
  commit(true)
  return h.fence == now and ttl == ttl_of(raw) and flags == 0 and now or { 1, now, h.fence, ttl, flags }
end

local NO_DELAY = '\0\0\0\0\0\0\0\0'

-- The only shortcut, since every lock is released: the holder leaves and the state has nothing else. This needs neither
-- the rules nor the time: if the hold has ended meanwhile, nobody has come since. True: done, and the name is idle.
local function leave_idle(key, bytes, watched, raw)
  if wrapped or not bytes or watched or sub(bytes, 1, 5) ~= 'hf4s\8'
    or sub(bytes, 47, 62) ~= sub(raw, 1, 16) or sub(bytes, 95, 102) ~= NO_DELAY then
    return false
  end
  local idle = 'hf4s\0' .. sub(bytes, 6, 21)
  call('SET', key, idle, 'KEEPTTL')
  stored = idle
  return true
end

-- Refuses the id from now on.
local function keep_tombstone(id, ttl)
  tombstone, tombstone_id = now + ttl + TOMBSTONE_EXTRA, id
  tombs_till, dirty = max(tombs_till, tombstone), true
end

-- Release and withdrawal are one verb, since a waiter may have become the holder meanwhile. raw: the claim's id,
-- process and ttl. remember: '1': keep a tombstone; '2': unless the claim is here, since then its only request has
-- arrived; anything but nil: no shortcut. {departure, now}: 0 was waiting, 1 was the holder, 2 gone; a number: was the
-- holder; the number is now, or 0: the clock was not read.
local function leave(key, bytes, watched, raw, remember, long_name)
  if not remember and leave_idle(key, bytes, watched, raw) then return 0 end
  take(key, bytes, watched, long_name) -- not promoted yet: a claim that leaves must not be granted on its way out
  local id, left = id_of(raw), 2
  local h = find_holder(id)
  local w = (not h or h ~= holder) and find_waiter(id)
  if w then
    if h then waiting = waiting + 1 end -- what a failure left in the queue: the state does not count it
    withdraw({ w })
    left = 0
  end
  if h then
    remove_holder(h)
    note(RELEASED, h.raw, h)
    left = 1
  elseif w then
    note(WITHDRAWN, w.raw)
  end
  if remember == '1' or remember == '2' and left == 2 then keep_tombstone(id, (unpack_bytes('>d', raw, 33))) end
  promote()
  commit()
  return left == 1 and now or { left, now }
end

-- Prolongs a hold, keeps a place in the queue, finds a grant whose message was lost. With a fence (of a quorum): no
-- later fence is below it. {state (0 renewed, 1 held, 2 waiting, 3 lost), fence, ttl, flags, recheck after}
local function renew(key, bytes, watched, raw, fence)
  take(key, bytes, watched)
  caller = id_of(raw)
  local h, w = find_caller()
  if not h then
    local waits = w and not fence
    local answer = { waits and 2 or 3, 0, 0, 0, waits and recheck_after(w) or 0 }
    commit()
    return answer
  end
  if fence and fence > h.fence then
    h.fence = fence
    holder_changed(h)
  end
  local block_end = fence and fence + block_of(h.raw) - 1 or 0
  if block_end > last then last, dirty = block_end, true end
  if h.revoked then tell_gone(h, 2) end -- the message may have been lost
  note(RENEWED, h.raw, h)
  local shown = commit_and_show(h)
  return { is_renewed(h.raw) and not h.revoked and 0 or 1, shown[3], shown[4], shown[5], 0 }
end

-- Downgrade (to shared) or upgrade (to exclusive) of a hold. While it moves between the state and the hash it is in
-- both, never in neither.
local function change(key, bytes, watched, raw, mode)
  take(key, bytes, watched)
  promote()
  local to, h = tonumber(mode), find_holder(id_of(raw))
  if not h then commit_and_refuse(REFUSED.not_held) end
  if to == PERMIT or h.mode == PERMIT then commit_and_refuse(REFUSED.no_other_mode) end
  local moves = h.mode ~= to
  if moves then
    -- An upgrade never waits: two readers that did would wait for each other.
    if to == EXCLUSIVE and held > 1 then commit_and_refuse(REFUSED.other_readers) end
    if to == EXCLUSIVE and delay_till > now then commit_and_refuse(REFUSED.reader_died) end
    take_out(h)
    h.mode, h.fence = to, next_fence(block_of(h.raw))
    add_holder(h)
    if to == SHARED then
      lift_limit()
      call('HSET', side('h'), h.id, bytes_of(h))
      keep('h', kept_till)
    end
    note(GRANTED, h.raw, h)
    promote()
  end
  prolong(h)
  local answer = commit_and_show(h)
  if moves and to == EXCLUSIVE then try('HDEL', side('h'), h.id) end -- what stays is recognised by check_held
  return answer
end

-- Gives a hold to another claim, with the same fence: if `from` holds, the claim `raw` holds instead, from now on for
-- its ttl; if it holds already, that hold is prolonged. remember: '1': `from` gets a tombstone.
local function transfer(key, bytes, watched, raw, from, remember)
  take(key, bytes, watched) -- not promoted yet: a waiter must not be granted while it is being transferred
  local to = id_of(raw)
  local h = find_holder(to) or not left_behind(to) and find_holder(from)
  if not h or h.revoked then
    promote()
    commit_and_refuse(REFUSED.nothing_to_take)
  end
  local before, moves = h.raw, h.id ~= to
  take_out(h)
  if moves then
    note(RELEASED, before, h)
    if remember == '1' then keep_tombstone(from, ttl_of(before)) end
  end
  -- What was granted does not change: lock delay, offer, fences, permits, mode, fairness.
  h.id, h.raw = to, sub(raw, 1, 48) .. sub(before, 49, 78) .. sub(raw, 79)
  h.fin, h.offer, h.told = now + ttl_of(raw), false, waiting > 0
  add_holder(h)
  if moves and h.mode ~= EXCLUSIVE then move_in_hash(from, h) end
  note(moves and GRANTED or RENEWED, h.raw, h)
  promote()
  return commit_and_show(h)
end

-- The ids of all holders: the hash does not have those yet that were granted just now.
local function holding_ids()
  local ids = {}
  for _, id in ipairs(held > 0 and call('HKEYS', side('h')) or {}) do ids[id] = true end
  for id in pairs(written or {}) do ids[id] = true end
  if holder then ids[holder.id] = true end
  return ids
end

-- Revokes holds: at once (force is '1'), or by not renewing them any more. The rest: the ids to revoke; none: all. {0,
-- now, then each revoked holder, as it was}
local function revoke(key, bytes, watched, force, ...)
  take(key, bytes, watched)
  promote()
  local answer, those = { 0, now }, ... and {} or holding_ids()
  for _, id in ipairs({ ... }) do those[id] = true end
  for id in pairs(those) do
    local h = find_holder(id)
    if h then
      answer[#answer + 1] = bytes_of(h)
      if force == '1' then
        remove_holder(h)
        note(FORCED, h.raw, h)
      else
        h.revoked = true
        holder_changed(h)
      end
      tell_gone(h, force == '1' and 1 or 2)
    end
  end
  promote()
  commit()
  return answer
end

-- For a verb that writes nothing if the name is unused. MGET does not show a value of another type.
local function load_to_read(key, bytes, watched, long_name)
  take(key, bytes, watched, long_name)
  if not stored and call('EXISTS', key) == 1 then refuse(REFUSED.foreign) end
  promote()
end

-- Who holds and who waits: {0, now, {holders}, {waiters, in order}, lock delay left}, at most 10,000 of each; a holder
-- as stored, a waiter as its time of arrival and its claim.
local function inspect(key, bytes, watched)
  load_to_read(key, bytes, watched)
  commit()
  local holding, queued, granted = { holder and bytes_of(holder) }, {}, {}
  if holder then granted[holder.id] = true end
  for i, found in ipairs(held > 0 and call('HVALS', side('h')) or {}) do
    if i <= SHOWN_LIMIT then holding[#holding + 1] = found end
    granted[sub(found, 26, 41)] = true
  end
  walk(first, function(_, record)
    if not granted[sub(record, 17, 32)] then queued[#queued + 1] = sub(record, 1, 8) .. sub(record, 17) end
    return #queued == SHOWN_LIMIT
  end)
  return { 0, now, holding, queued, max(delay_till - now, 0) }
end

-- How many hold and wait: {holders, waiters, name, lock delay left}.
local function summary(key, bytes, watched)
  take(key, bytes, watched)
  promote()
  commit()
  return { (holder and 1 or 0) + held, waiting, name, max(delay_till - now, 0) }
end

-- --- a count-down latch --------------------------------------------------------------------------

local REMEMBERED = 60000 -- milliseconds: ids of an earlier count
local GENERATIONS = 8 -- of counts, whose ids are looked up

local function latch_ids(generation) return string.format('%s:%.0f', side('k'), generation) end

local function counted_before(generation, id)
  for which = generation, max(1, generation - GENERATIONS), -1 do
    if call('SISMEMBER', latch_ids(which), id) == 1 then return true end
  end
  return false
end

-- Writes the id, then the count, then the state, which makes it effective: a failure on the way leaves the latch as it
-- was, or counted. life: of the latch, from now on; nil: unchanged.
local function write_latch(id, count, generation, before, life)
  call('SADD', latch_ids(generation), id)
  local done = try('HSET', side('l'), 'count', count, 'generation', generation)
  if type(done) == 'table' and done.err then
    call('SREM', latch_ids(generation), id)
    fail(done)
  end
  if life then latch_till, dirty = now + life, true end
  local fin = string.format('%.0f', math.ceil(latch_till / 1000))
  if generation > before and before > 0 then call('PEXPIRE', latch_ids(before), REMEMBERED) end
  call('PEXPIREAT', side('l'), fin)
  call('PEXPIREAT', latch_ids(generation), fin)
  commit(true)
  if life then publish('l', sub(tail, 2)) end
  return { 0, now, count }
end

-- verb: 's' set, 'd' down, 'r' read. {0, now, count}, count -1: unset.
local function latch(key, bytes, watched, verb, amount, id, life, long_name)
  load_to_read(key, bytes, watched, long_name)
  if holder or held > 0 or waiting > 0 then commit_and_refuse(REFUSED.in_use_as_lock) end
  local found = latch_till > now and call('HMGET', side('l'), 'count', 'generation') or {}
  local count, generation = tonumber(found[1] or nil), tonumber(found[2] or 0)
  if verb == 'r' then return { 0, now, count or -1 } end
  if verb == 'd' and not count then refuse(REFUSED.latch_is_unset) end
  if count and counted_before(generation, id) then return { 0, now, count } end
  if verb == 's' then
    if count and count > 0 then refuse(REFUSED.latch_is_set, count) end
    return write_latch(id, tonumber(amount), generation + 1, generation, tonumber(life))
  end
  -- A down at zero changes nothing, but must not count towards the next count.
  return write_latch(id, max(0, count - tonumber(amount)), generation, generation, count > 0 and tonumber(life))
end
