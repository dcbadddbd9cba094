-- The grant rules, as in stores/ledger: what has ended, who may be granted, who is next.

local function free_for(raw)
  if holder or delay_till > now then return false end
  local mode = mode_of(raw)
  if mode == EXCLUSIVE then return held == 0 end
  if mode == SHARED then return true end
  local amount, all = permits_of(raw)
  return permits + amount <= all
end

-- The caller can be granted by its answer, subscription or not. If it cannot be granted now, it keeps others waiting
-- only if it could hear of its turn.
local function eligible(w) return w.id ~= caller or free_for(w.raw) or reachable(process_of(w.raw)) end

-- The first in the queue that may be granted and is not `skipped`, or nil.
local function next_in_queue(skipped)
  local i, w = 0
  repeat
    i = i + 1
    while not queue or i > #queue do
      if not read_queue() then return nil end
    end
    w = queue[i]
  until not (gone and gone[w.id]) and eligible(w) and not (skipped and skipped(w))
  return w
end

-- May a newcomer take it before those that wait? Not if one of them or the newcomer is fair; and readers that come one
-- after the other would keep a writer out.
local function may_take(raw)
  if not free_for(raw) then return false end
  if waiting == 0 then return true end
  if waiting > LOOK_LIMIT then return false end
  local reads, fair = mode_of(raw) == SHARED, is_fair(raw)
  return not next_in_queue(function(w)
    return not fair and not is_fair(w.raw) and not (reads and mode_of(w.raw) == EXCLUSIVE)
  end)
end

-- A fence that a quorum proposes is taken near this clock, on both sides: not above it, or one client would push the
-- fences of all ahead; not below it, or a server that forgot its last fence could repeat it.
local function next_fence(block, proposed)
  local fence = last < now and now or last + 1
  if proposed and proposed > last and math.abs(proposed - now) <= PROPOSAL_SLACK then fence = proposed end
  last, dirty = fence + (block > 1 and block - 1 or 0), true
  return fence
end

-- To the caller as a lease; to another as an offer, which its first renewal makes a lease.
local function grant(raw, id, mode, proposed)
  local offer = caller ~= id
  local ttl, _, reserved, block = unpack_bytes('>dddI4', raw, 41)
  local h = {
    fence = next_fence(block, proposed), fin = now + (offer and min(ttl, reserved) or ttl), since = now,
    mode = mode, offer = offer, told = not offer and waiting > 0, revoked = false, id = id, raw = raw,
  }
  if observed then note(GRANTED, raw, h) end
  add_holder(h)
  return h
end

-- What a holder is answered: for how long, and flags (1 an offer, 2 wanted).
local function grant_of(h)
  local ttl = h.fin - now
  if h.offer then ttl = min(ttl, (unpack_bytes('>d', claim_of(h), 57))) end
  return ttl, (h.offer and 1 or 0) + (waiting > 0 and 2 or 0)
end

-- Nobody released it: the holder may be at work still, and where no fence is checked only time helps.
local function hold_ended(h)
  remove_holder(h)
  local delay = unpack_bytes('>d', claim_of(h), 49)
  if delay > 0 then delay_till = max(delay_till, h.fin + delay) end
  lasts(delay_till)
  if h.offer and not h.revoked then mark = max(mark, h.since) end
  note(EXPIRED, claim_of(h), h)
end

-- Once: nothing else ends within a call.
local function drop_ended()
  if ended_out then return end
  ended_out = true
  if held > 0 then check_held() end
  held_before = held
  if holder and holder.fin <= now then hold_ended(holder) end
  if held > 0 and next_end <= now then drop_ended_holders(hold_ended) end
  if waiting > 0 and dead <= now then sweep() end
end

-- What has ended goes out, the next in the queue come in.
local function promote()
  drop_ended()
  if waiting == 0 or holder or delay_till > now then return end
  local offered
  for _ = 1, GRANTS_LIMIT do
    local w = next_in_queue()
    if not w or not free_for(w.raw) then break end
    cut_waiter(w)
    if held > 0 and find_holder(w.id) then
      waiting = waiting + 1 -- what a failure left in the queue: the state does not count it
    else
      local h = grant(w.raw, w.id, mode_of(w.raw))
      if h.offer then
        offered = offered or {}
        offered[#offered + 1] = h
      end
    end
    if holder then break end
  end
  if left_gap and left_gap > first then first = left_gap end
  if not offered then return end
  -- After the last grant, so that `wanted` does not count those who got in with it.
  for _, h in ipairs(offered) do
    if waiting > 0 then mark_told(h) end
    local ttl, flags = grant_of(h)
    post(process_of(claim_of(h)), pack('>c1c16dddB', 'g', h.id, h.fence, ttl, now, flags))
  end
end

-- The holder was heard: an offer becomes a lease, and a lease that is renewed counts from now.
local function prolong(h)
  if not h.revoked and (h.offer or is_renewed(claim_of(h))) then
    h.offer = false
    h.fin = now + ttl_of(claim_of(h))
    holder_changed(h)
  end
  return grant_of(h)
end

-- When asking again could help. w: its place in the queue, or nil.
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
  local place = w.number - first -- so many are before it, at most
  wait = wait + min(STAGGER * place, STAGGER_LIMIT)
  -- Mostly a holder is done before it need be told that somebody waits. If not, the next look tells it.
  if holder and not holder.told and place == 0 then
    wait = min(wait, max(holder.since + WANTED_AFTER - now, 0))
  elseif untold > 0 and w == joined then
    wait = min(wait, WANTED_AFTER)
  end
  return wait
end

-- The payload of one that is in the way, for people.
local function blocker_of()
  if holder then return payload_of(claim_of(holder)) end
  if held > 0 then
    local found = call('HSCAN', side('h'), 0, 'COUNT', 1)[2][2]
    return found and payload_of(claim_of(hold_of(found, 1))) or ''
  end
  local w = next_in_queue()
  return w and w.id ~= caller and payload_of(w.raw) or ''
end

-- Writes what was changed, the state before what it counts, then notifies. grows: the verb takes memory.
local function commit(grows)
  local longer
  if dirty or beat then
    longer = last_end > kept_till
    if longer then kept_till, dirty = last_end + LIFE_SLACK, true end
    -- A script has no flag that lets it run when memory is out, but once it has written, the server lets it write on.
    if wrapped and not grows and existed then keep('s', kept_till + STATE_LIFE * 1000) end
    if longer and held_before > 0 then keep('h', kept_till) end
    if longer and waiting > 0 then keep('q', kept_till) end
  end
  if written then write_holders_before() end
  if withdrawn then paged(call, 'HDEL', side('q'), withdrawn) end -- they must not be granted, whatever fails
  if dirty then save(longer) end
  if written then write_holders_after() end
  local problem = (cut or withdrawn or joined or beat) and write_queue_after()
  if problem then
    try('SET', state_key, existed, 'KEEPTTL')
    if rewritten then rewritten[state_key] = existed end
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
local function commit_and_show(h, grows)
  local ttl, flags = grant_of(h)
  commit(grows)
  return { 1, now, h.fence, ttl, flags }
end
