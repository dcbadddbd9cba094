-- The grant rules, as in stores/ledger: what has ended, who may be granted, who is next.

local function free_for(raw)
  if holder or delay_till > now then return false end
  local mode = mode_of(raw)
  if mode == EXCLUSIVE then return held == 0 end
  if mode == SHARED then return true end
  local amount, all = permits_of(raw)
  return permits + amount <= all
end

-- An offer that was not taken up was made to a process that is silent: dead, or stopped. Others may be as silent, and
-- each would cost the queue another offer. So from then on, every waiter not heard from since that offer was made is
-- passed over, keeping its place, until it is heard from. The mark is the time of that offer.
local function passed_over(process, heard) return mark > 0 and heard <= mark or not reachable(process) end

-- The caller can be granted by its answer, subscription or not. If it cannot be granted now, it keeps others waiting
-- only if it can be notified of its turn.
local function eligible(w) return w.id ~= caller or free_for(w.raw) or reachable(process_of(w.raw)) end

-- Calls visit with each waiter that could take its turn, in order, until it returns true. Waiters that are passed over
-- cost little: ten thousand dead ones must not keep a live one waiting.
local function in_line(visit)
  walk(first, function(number, record)
    local heard, id, process = unpack_bytes('>dc16c16', record, 9)
    if cut and cut[id] or id ~= caller and passed_over(process, heard) then return false end
    local w = waiter_of(number, record)
    return eligible(w) and visit(w)
  end)
end

-- May a newcomer take it before the waiters? Not if one of them or the newcomer is fair; and a stream of readers
-- would keep a writer out.
local function may_take(raw)
  if not free_for(raw) then return false end
  if waiting == 0 then return true end
  if waiting > LOOK_LIMIT then return false end
  local reads, fair, may = mode_of(raw) == SHARED, is_fair(raw), true
  in_line(function(w)
    may = not fair and not is_fair(w.raw) and not (reads and mode_of(w.raw) == EXCLUSIVE)
    return not may
  end)
  return may
end

-- A fence that a quorum proposes is accepted near this clock, on both sides: not far above it, or one client would push
-- everybody's fences ahead; not far below it, or a server that forgot its last fence could repeat it.
local function next_fence(block, proposed)
  local fence = last < now and now or last + 1
  if proposed and proposed > last and math.abs(proposed - now) <= PROPOSAL_SLACK then fence = proposed end
  last, dirty = fence + (block > 1 and block - 1 or 0), true
  return fence
end

-- To the caller as a lease; to another claim as an offer, which its first renewal makes a lease.
local function grant(raw, id, mode, proposed)
  local offer = caller ~= id
  local ttl, _, reserved, block = unpack_bytes('>dddI4', raw, 41)
  local h = {
    fence = next_fence(block, proposed), fin = now + (offer and min(ttl, reserved) or ttl), since = now,
    mode = mode, offer = offer, told = not offer and waiting > 0, revoked = false, id = id, raw = raw,
  }
  note(GRANTED, raw, h)
  add_holder(h)
  return h
end

-- The answer to a holder: for how long, and flags (1 an offer, 2 wanted).
local function grant_of(h)
  local ttl = h.fin - now
  if h.offer then ttl = min(ttl, (unpack_bytes('>d', h.raw, 57))) end
  return ttl, (h.offer and 1 or 0) + (waiting > 0 and 2 or 0)
end

-- Loads a name as it is now: ended claims are removed, and nobody is granted yet.
local function take(key, bytes, watched, long_name)
  load(key, bytes, watched, long_name)
  if held > 0 then check_held() end
  if holder and holder.fin <= now then hold_ended(holder) end
  if held > 0 and next_end <= now then drop_ended_holders() end
  if waiting > 0 and dead <= now then sweep() end
end

-- Grants the next in the queue.
local function promote()
  if waiting == 0 or holder or delay_till > now then return end
  local offered, count = {}, 0
  in_line(function(w)
    if not free_for(w.raw) then return true end
    cut_waiter(w)
    count = count + 1
    if held > 0 and find_holder(w.id) then
      waiting = waiting + 1 -- what a failure left in the queue: the state does not count it
    else
      local h = grant(w.raw, w.id, mode_of(w.raw))
      if h.offer then offered[#offered + 1] = h end
    end
    return holder or count == GRANTS_LIMIT
  end)
  -- After the last grant, so that `wanted` does not count claims that were granted together.
  for _, h in ipairs(offered) do
    if waiting > 0 then mark_told(h) end
    local ttl, flags = grant_of(h)
    post(process_of(h.raw), pack('>c1c16dddB', 'g', h.id, h.fence, ttl, now, flags))
  end
end

-- A sign of life from the holder: an offer becomes a lease, and a lease that is renewed counts from now.
local function prolong(h)
  if not h.revoked and (h.offer or is_renewed(h.raw)) then
    h.offer = false
    h.fin = now + ttl_of(h.raw)
    holder_changed(h)
  end
  return grant_of(h)
end

-- When it makes sense to ask again. w: its place in the queue, or nil.
local function recheck_after(w)
  local wait = 0
  if delay_till > now then
    wait = delay_till - now
  elseif holder then
    wait = holder.fin - now
  elseif held > 0 then
    wait = max(next_end - now, 0)
  end
  if not w then return wait end
  local place = w.number - first -- at most so many are before it
  wait = wait + min(STAGGER * place, STAGGER_LIMIT)
  -- Usually a holder is done before it needs to be notified that somebody waits. If not, the next look notifies it.
  if holder and not holder.told and place == 0 then
    wait = min(wait, max(holder.since + WANTED_AFTER - now, 0))
  elseif untold > 0 and w.new then
    wait = min(wait, WANTED_AFTER)
  end
  return wait
end

-- The payload of a blocker, for people.
local function blocker_of()
  if holder then return payload_of(holder.raw) end
  if held > 0 then
    local found = call('HSCAN', side('h'), 0, 'COUNT', 1)[2][2]
    return found and payload_of(hold_of(found, 1).raw) or ''
  end
  local payload = ''
  in_line(function(w)
    if w.id ~= caller then payload = payload_of(w.raw) end
    return true
  end)
  return payload
end

-- When the last of what is changed ends.
local function last_end()
  local till = max(now, delay_till, tombs_till, latch_till)
  if holder and holder.fin > till then till = holder.fin end
  if waiter then till = max(till, now + WAITER_LEASE) end
  if written then
    for _, h in pairs(written) do till = max(till, h.fin) end
  end
  return till
end

-- Writes what was changed, the state before the claims that it counts, then notifies. grows: the verb takes memory.
local function commit(grows)
  local before = stored
  if dirty or waiter then
    local till = last_end()
    local longer = till > kept_till
    if longer then kept_till = till + LIFE_SLACK end
    if not grows then lift_limit() end
    if longer and held > 0 then keep('h', kept_till) end
    if longer and waiting > 0 then keep('q', kept_till) end
    if dirty or longer then save(longer) end
  end
  if written then write_holders() end
  local problem = (cut or waiter) and write_queue()
  if problem then
    try('SET', state_key, before, 'KEEPTTL')
    stored = before
    fail(problem)
  end
  if tombstone then
    call('ZREMRANGEBYSCORE', side('t'), '-inf', now)
    call('ZADD', side('t'), tombstone, tombstone_id)
    keep('t', tombs_till)
  end
  if messages or events then deliver() end
end

-- Refuses a verb, and writes what else has changed.
local function commit_and_refuse(why, number)
  commit()
  refuse(why, number)
end

-- The answer to a verb that leaves a hold: {1, now, fence, ttl, flags}.
local function commit_and_show(h)
  local ttl, flags = grant_of(h)
  commit()
  return { 1, now, h.fence, ttl, flags }
end
