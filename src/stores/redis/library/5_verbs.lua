-- The verbs. Each is one atomic step, and idempotent by the claim's id.

-- Has the claim a tombstone?
local function left_behind(id)
  local till = tombs_till > now and call('ZSCORE', side('t'), id)
  return till and tonumber(till) > now
end

-- Why a claim that is new here cannot be placed, or nil. idle: nobody holds or waits.
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

-- Places the claim if it is new, finds where it stands if not. Answers its hold, or nil and its place in the queue (or
-- nil), or false and why it is refused; and whether the verb takes memory.
local function place(raw, proposed)
  caller = sub(raw, 1, 16)
  if latch_till > now then return false, REFUSED.in_use_as_latch end
  if holder or held > 0 or waiting > 0 then
    promote()
    local h = find_holder(caller)
    if h then
      prolong(h)
      return h
    end
    local w = waiting > 0 and find_waiter(caller)
    if w then
      keep_place(w)
      tell_wanted()
      return nil, w
    end
  end
  local mode, idle = byte(raw, 77), not holder and held == 0 and waiting == 0
  local why, number = objection(raw, mode, idle)
  if why then return false, why, number end
  if idle and delay_till <= now or may_take(raw) then return grant(raw, caller, mode, proposed), nil, true end
  if not is_queued(raw) then return nil end
  join(raw)
  note(QUEUED, raw)
  if holder then tell_wanted() end
  return nil, joined, true
end

-- {1, now, fence, ttl, flags}: granted; a number: granted, it is now and the fence, the ttl is the claim's, no flags (a
-- table takes the server as long as a command); a string with now, recheck after, queued and blocker: blocked;
-- {-1, now, why, number}: refused.
local function attempt(key, bytes, raw, long_name, proposed)
  local why = load(key, bytes, long_name)
  if why then return refusal(why) end
  local h, w, extra = place(raw, proposed)
  if h == false then return refusal(commit() or w, extra) end
  -- Asked before the writing, which changes what is read.
  local blocked = not h and pack('>ddBc0', now, recheck_after(w), w and 1 or 0, blocker_of())
  why = commit(extra)
  if why then return refusal(why) end
  if blocked then return blocked end
  if extra and waiting == 0 and h.fence == now then return now end
  local ttl, flags = grant_of(h)
  return { 1, now, h.fence, ttl, flags }
end

local NO_DELAY = '\0\0\0\0\0\0\0\0'

-- The one shortcut, since every lock is released: the holder leaves and the state has nothing else. That needs neither
-- the rules nor the time: if the hold has ended meanwhile, nobody has come since. Answers true, and the name is idle.
local function leave_idle(key, bytes, raw)
  if wrapped or observed or sub(bytes, 1, 5) ~= 'hf3s\8' or sub(bytes, 47, 62) ~= sub(raw, 1, 16)
    or sub(bytes, 95, 102) ~= NO_DELAY then
    return false
  end
  local idle = 'hf3s\0' .. sub(bytes, 6, 21)
  call('SET', key, idle, 'KEEPTTL')
  if states then states[key] = idle end
  return true
end

-- Release and withdrawal are one verb, since a waiter may have become the holder meanwhile. raw: of the claim its id,
-- process and ttl. remember: '1': keep a tombstone; '2': unless the claim is here, since its only request came before.
-- {departure, now}: 0 was waiting, 1 was the holder, 2 gone; a number: was the holder, it is now, or 0: not asked for.
local function leave(key, bytes, raw, remember, long_name)
  if (remember or '') == '' then
    if not bytes then return { 2, now } end
    if states and leave_idle(key, bytes, raw) then return 0 end
  end
  local why = load(key, bytes, long_name)
  if why then return refusal(why) end
  local id = id_of(raw)
  -- Not promoted yet: a claim that leaves must not be granted on its way out.
  drop_ended()
  local left = 2
  local h = find_holder(id)
  local w = waiting > 0 and (not h or h ~= holder) and find_waiter(id)
  if h then
    if w then -- what a failure left in the queue: the state does not count it
      cut_waiter(w, true)
      waiting = waiting + 1
    end
    remove_holder(h)
    if observed then note(RELEASED, claim_of(h), h) end
    left = 1
  elseif w then
    cut_waiter(w, true)
    note(WITHDRAWN, w.raw)
    left = 0
  end
  if remember == '1' or remember == '2' and left == 2 then
    tombstone, tombstone_id = now + unpack_bytes('>d', raw, 33) + TOMBSTONE_EXTRA, id
    tombs_till, dirty = max(tombs_till, tombstone), true
  end
  if waiting > 0 then promote() end
  why = commit()
  if why then return refusal(why) end
  return left == 1 and now or { left, now }
end

-- Prolongs a hold, keeps a place in the queue, finds a grant whose message was lost. With a fence (of a quorum): no
-- later one is below it. Answers state (0 renewed, 1 held, 2 waiting, 3 lost, 4 unknown: then no fence but an error's
-- text follows), fence, ttl, flags, recheck after.
local function renew(key, bytes, raw, fence)
  if not bytes or load(key, bytes) then return 3, 0, 0, 0, 0 end
  caller = id_of(raw)
  promote()
  local h = find_holder(caller)
  local w = not h and not fence and find_waiter(caller)
  local state, ttl, flags, recheck = 3, 0, 0, 0
  if h then
    if fence then
      if fence > h.fence then
        h.fence = fence
        holder_changed(h)
      end
      local block_end = fence + block_of(claim_of(h)) - 1
      if block_end > last then last, dirty = block_end, true end
    end
    state = is_renewed(claim_of(h)) and not h.revoked and 0 or 1
    ttl, flags = prolong(h)
    if h.revoked then tell_gone(h, 2) end -- the message may have been lost
    note(RENEWED, claim_of(h), h)
  elseif w then
    keep_place(w)
    tell_wanted()
    state, recheck = 2, recheck_after(w)
  end
  local why = commit()
  if type(why) == 'table' then return 4, why.err, 0, 0, 0 end
  return state, h and h.fence or 0, ttl, flags, recheck
end

-- Downgrade (to shared) or upgrade (to exclusive) of a hold. {1, now, fence, ttl, flags}.
local function change(key, bytes, raw, mode)
  local to = tonumber(mode)
  if not bytes then return refusal(REFUSED.not_held) end
  local why = load(key, bytes)
  if why then return refusal(why) end
  promote()
  local h = find_holder(id_of(raw))
  if not h then
    why = REFUSED.not_held
  elseif to == PERMIT or h.mode == PERMIT then
    why = REFUSED.no_other_mode
  elseif h.mode ~= to and to == EXCLUSIVE and held > 1 then
    why = REFUSED.other_readers -- an upgrade never waits: two readers that did would wait for each other
  elseif h.mode ~= to and to == EXCLUSIVE and delay_till > now then
    why = REFUSED.reader_died
  end
  if why then return refusal(commit() or why) end
  if h.mode ~= to then
    remove_holder(h)
    h.mode = to
    h.fence = next_fence(block_of(claim_of(h)))
    add_holder(h)
    moved = h.id
    note(GRANTED, claim_of(h), h)
    promote()
  end
  local ttl, flags = prolong(h)
  why = commit()
  if why then return refusal(why) end
  return { 1, now, h.fence, ttl, flags }
end

-- Gives a hold to another claim, with the same fence: where `from` holds, the claim `raw` holds instead, from now on
-- for its ttl; where it holds already, that is prolonged. remember: '1': `from` gets a tombstone.
-- {1, now, fence, ttl, flags}.
local function transfer(key, bytes, raw, from, remember)
  if not bytes then return refusal(REFUSED.nothing_to_take) end
  local why = load(key, bytes)
  if why then return refusal(why) end
  drop_ended() -- not promoted yet: a claim that waits must not be granted on its way to another
  local to = id_of(raw)
  local h = find_holder(to) or not left_behind(to) and find_holder(from)
  if not h or h.revoked then
    promote()
    return refusal(commit() or REFUSED.nothing_to_take)
  end
  local before = claim_of(h)
  if h.id ~= to then
    note(RELEASED, before, h)
    if remember == '1' then
      tombstone, tombstone_id = now + ttl_of(before) + TOMBSTONE_EXTRA, from
      tombs_till = max(tombs_till, tombstone)
    end
  end
  local given = {
    fence = h.fence, fin = now + ttl_of(raw), since = h.since, mode = h.mode, offer = false, told = waiting > 0,
    revoked = false, id = to,
    -- What was granted stays what it is: lock delay, offer, fences, permits, mode, fairness.
    raw = sub(raw, 1, 48) .. sub(before, 49, 78) .. sub(raw, 79),
  }
  remove_holder(h)
  add_holder(given)
  note(h.id == to and RENEWED or GRANTED, given.raw, given)
  promote()
  local ttl, flags = grant_of(given)
  why = commit()
  if why then return refusal(why) end
  return { 1, now, given.fence, ttl, flags }
end

-- The ids of all that hold now.
local function holding_ids()
  local ids = held_before > 0 and call('HKEYS', side('h')) or {}
  if holder then ids[#ids + 1] = holder.id end
  for id, h in pairs(written or {}) do
    if h and call('HEXISTS', side('h'), id) == 0 then ids[#ids + 1] = id end
  end
  return ids
end

-- Takes holds away: at once (force is '1'), or by not renewing them any more. What follows: the ids of those meant;
-- none: all. {0, now, then each holder taken, as it was}
local function revoke(key, bytes, force, ...)
  if not bytes then return { 0, now } end
  local why = load(key, bytes)
  if why then return refusal(why) end
  promote()
  local answer = { 0, now }
  for _, id in ipairs(... and { ... } or holding_ids()) do
    local h = find_holder(id)
    if h then
      answer[#answer + 1] = bytes_of(h)
      if force == '1' then
        remove_holder(h)
        tell_gone(h, 1)
        note(FORCED, claim_of(h), h)
      else
        h.revoked = true
        holder_changed(h)
        tell_gone(h, 2)
      end
    end
  end
  promote()
  why = commit()
  return why and refusal(why) or answer
end

-- Who holds and who waits: {0, now, {holders}, {waiters, in order}, lock delay left}, at most 10,000 of each; a holder
-- as it is stored, a waiter as when it came and its claim.
local function inspect(key, bytes)
  if not bytes then
    if call('EXISTS', key) == 1 then return refusal(REFUSED.foreign) end
    return { 0, now, {}, {}, 0 }
  end
  local why = load(key, bytes)
  if why then return refusal(why) end
  promote()
  why = commit()
  if why then return refusal(why) end
  local holding, queued, granted = { holder and bytes_of(holder) }, {}, {}
  if holder then granted[holder.id] = true end
  for i, found in ipairs(held > 0 and call('HVALS', side('h')) or {}) do
    if i <= SHOWN_LIMIT then holding[#holding + 1] = found end
    granted[sub(found, 26, 41)] = true
  end
  local number = first
  while waiting > 0 and number <= seq and #queued < SHOWN_LIMIT do
    local fields = {}
    for one = number, min(seq, number + PAGE - 1) do fields[#fields + 1] = number_field(one) end
    for _, found in ipairs(call('HMGET', queue_hash(), unpack(fields))) do
      if found and #queued < SHOWN_LIMIT and not granted[sub(found, 17, 32)] then
        queued[#queued + 1] = sub(found, 1, 8) .. sub(found, 17)
      end
    end
    number = number + PAGE
  end
  return { 0, now, holding, queued, max(delay_till - now, 0) }
end

-- How many hold and wait: holders, waiters, name, lock delay left.
local function summary(key, bytes)
  if load(key, bytes) then return { 0, 0, '', 0 } end
  promote()
  local why = commit()
  if type(why) == 'table' then error(why, 0) end
  return { (holder and 1 or 0) + held, waiting, name, max(delay_till - now, 0) }
end

-- --- a count-down latch --------------------------------------------------------------------------

local REMEMBERED = 60000 -- milliseconds: ids of an earlier count
local GENERATIONS = 8 -- of counts whose ids are looked at

local function latch_ids(generation) return side('k') .. ':' .. string.format('%.0f', generation) end

local function counted_before(generation, id)
  for which = generation, max(1, generation - GENERATIONS), -1 do
    if call('SISMEMBER', latch_ids(which), id) == 1 then return true end
  end
  return false
end

-- Writes the id, then the count, then the state, which makes it known: a failure on the way leaves it as it was, or
-- counted. life: of the latch, from now on; nil: as it is.
local function write_latch(id, count, generation, before, life)
  call('SADD', latch_ids(generation), id)
  local done = try('HSET', side('l'), 'count', count, 'generation', generation)
  if type(done) == 'table' and done.err then
    call('SREM', latch_ids(generation), id)
    return done
  end
  if life then latch_till, dirty = now + life, true end
  local fin = string.format('%.0f', math.ceil(latch_till / 1000))
  if generation > before and before > 0 then call('PEXPIRE', latch_ids(before), REMEMBERED) end
  call('PEXPIREAT', side('l'), fin)
  call('PEXPIREAT', latch_ids(generation), fin)
  local why = commit(true)
  if why then return refusal(why) end
  if life then try(sharded and 'SPUBLISH' or 'PUBLISH', base .. 'l', sub(tail, 2)) end
  return { 0, now, count }
end

-- verb: 's' set, 'd' down, 'r' read. {0, now, count}, count -1: unset.
local function latch(key, bytes, verb, amount, id, life, long_name)
  if not bytes and verb == 'r' then
    if call('EXISTS', key) == 1 then return refusal(REFUSED.foreign) end
    return { 0, now, -1 }
  end
  local why = load(key, bytes, long_name)
  if why then return refusal(why) end
  promote()
  if holder or held > 0 or waiting > 0 then return refusal(commit() or REFUSED.in_use_as_lock) end
  local stored = latch_till > now and call('HMGET', side('l'), 'count', 'generation') or {}
  local is_set = stored[1] and true or false
  local count, generation = tonumber(stored[1] or 0), tonumber(stored[2] or 0)
  if verb == 'r' then return { 0, now, is_set and count or -1 } end
  if verb == 'd' and not is_set then return refusal(REFUSED.latch_is_unset) end
  if is_set and counted_before(generation, id) then return { 0, now, count } end
  if verb == 's' and is_set and count > 0 then return refusal(REFUSED.latch_is_set, count) end
  if verb == 's' then return write_latch(id, tonumber(amount), generation + 1, generation, tonumber(life)) end
  -- A down at zero changes nothing, but must not count on the next one.
  return write_latch(id, max(0, count - tonumber(amount)), generation, generation, count > 0 and tonumber(life))
end
