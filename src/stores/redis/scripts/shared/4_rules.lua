-- The grant rules, as in stores/memory/ledger: who may be granted, what has ended, who is next.

-- An offer that nobody took up was made to somebody who is silent: dead, or stopped. Others may be so as well, and
-- each would cost the line another offer. So from then on who has not been heard since that offer was made is passed
-- over, with its place kept, until it is heard. 0: there is no such time.
function R.silence_mark()
  if R.mark then return R.mark end
  R.mark = 0
  if S.silent > 0 then
    local bytes = call('HGET', R.side('q'), 'm')
    R.mark = bytes and unpack_bytes('>d', bytes) or 0
    -- Who is alive has been heard since.
    if R.mark + waiter_lease <= now then R.mark, S.silent, R.dirty = 0, 0, true end
  end
  return R.mark
end

function R.note_silence(since)
  R.mark, S.silent, R.dirty = math.max(R.silence_mark(), since), 1, true
end

-- dead: when it counts as dead, if nothing is heard of it.
function R.passed_over(process, dead)
  local mark = R.silence_mark()
  if mark > 0 and dead and dead - waiter_lease <= mark then return true end
  return not R.reachable(process)
end

function R.free_for(claim)
  if S.shut > now or H then return false end
  if claim.mode == EXCLUSIVE then return S.held == 0 end
  if claim.mode == SHARED then return true end
  return S.permits + claim.permits <= claim.max
end

-- Who speaks can be granted by the answer; who is passed over must not keep others waiting.
function R.eligible(w)
  if w.id == R.speaker then return R.free_for(w.claim) or R.reachable(w.claim.process) end
  return not R.passed_over(w.claim.process, w.dead)
end

function R.next_in_line()
  for w in R.in_line() do
    if R.eligible(w) then return w end
  end
end

function R.may_take(claim)
  if not R.free_for(claim) then return false end
  if S.waiting == 0 then return true end
  local seen = 0
  for w in R.in_line() do
    if R.eligible(w) then
      seen = seen + 1
      if claim.fair or w.claim.fair or seen > limit.line then return false end
      if claim.mode == SHARED and w.claim.mode == EXCLUSIVE then return false end
    end
  end
  return true
end

-- A wish is taken near this clock, on both sides: not above it, or one client would push the fences of
-- all ahead; not below it, or a server that forgot its last fence could repeat it.
function R.next_fence(block)
  local fence = math.max(S.last + 1, now)
  if R.wish and R.wish > S.last and math.abs(R.wish - now) <= wish_slack then fence = R.wish end
  S.last = fence + math.max(block, 1) - 1
  R.dirty = true
  return fence
end

function R.grant(claim)
  local w = R.waiters[claim.id]
  if w and not w.gone then R.cut_waiter(w) end
  local offer = R.speaker ~= claim.id
  local h = {
    claim = claim, fence = R.next_fence(claim.block), since = now, mode = claim.mode, offer = offer,
    told = not offer and S.waiting > 0, revoked = false,
    fin = now + (offer and math.min(claim.ttl, claim.offer) or claim.ttl),
  }
  R.note(GRANTED, claim, h)
  R.add_holder(h)
  return h
end

function R.ended(h)
  R.remove_holder(h)
  -- Nobody said goodbye: it may be at work still, and where no fence is checked only time helps.
  if h.claim.delay > 0 then S.shut = math.max(S.shut, h.fin + h.claim.delay) end
  if h.offer and not h.revoked then R.note_silence(h.since) end
  R.note(EXPIRED, h.claim, h)
end

-- The ends were lost, or one of them: they are written anew from the holders.
function R.mend_ends()
  for _, bytes in ipairs(call('HVALS', R.side('h'))) do
    local id = sub(bytes, 29, 44)
    local h = R.find_holder(id)
    if h and h.fin <= now then
      R.ended(h)
    elseif h then
      R.holder_changed(h)
    end
  end
end

-- Once: it compares what is stored, and nothing else ends within a script.
function R.drop_ended()
  if R.dropped then return end
  R.dropped = true
  R.check_held()
  if H and H.fin <= now then R.ended(H) end
  if S.held > 0 and S.ends <= now then
    local over = call('ZRANGEBYSCORE', R.side('e'), '-inf', now, 'LIMIT', 0, limit.promote)
    for _, id in ipairs(over) do
      local h = R.find_holder(id)
      if h and h.fin <= now then R.ended(h) end
      if not h and R.holders[id] == false and R.holder_writes[id] == nil then R.holder_writes[id] = false end
    end
    local next_end = call('ZRANGE', R.side('e'), #over, #over, 'WITHSCORES')
    S.ends, R.dirty = next_end[2] and tonumber(next_end[2]) or now, true
    if call('ZCARD', R.side('e')) ~= R.held_before then R.mend_ends() end
  end
  if S.waiting > 0 and S.dead <= now and R.brief then
    S.dead, R.dirty = now + waiter_lease, true
    for _, w in ipairs(R.line) do
      if w.dead <= now then
        R.cut_waiter(w)
        R.note(WITHDRAWN, w.claim)
      else
        S.dead = math.min(S.dead, w.dead)
      end
    end
  elseif S.waiting > 0 and S.dead <= now then
    local over = call('ZRANGEBYSCORE', R.side('d'), '-inf', now, 'LIMIT', 0, limit.dead)
    for _, id in ipairs(over) do
      local w = R.find_waiter(id)
      if w then
        R.cut_waiter(w)
        R.note(WITHDRAWN, w.claim)
      elseif not R.waiters[id] then
        R.cut_waiters[#R.cut_waiters + 1] = id
      end
    end
    local next_end = call('ZRANGE', R.side('d'), #over, #over, 'WITHSCORES')
    S.dead, R.dirty = next_end[2] and tonumber(next_end[2]) or now + waiter_lease, true
  end
end

-- What a claim is answered.
function R.grant_of(h)
  local ttl = h.fin - now
  if h.offer then ttl = math.min(ttl, h.claim.offer) end
  return ttl, (h.offer and 1 or 0) + (S.waiting > 0 and 2 or 0)
end

function R.promote()
  R.drop_ended()
  if S.waiting == 0 or S.shut > now or H then return end
  local offered = {}
  for _ = 1, limit.promote do
    if H then break end
    local w = R.next_in_line()
    if not w or not R.free_for(w.claim) then break end
    local h = R.grant(w.claim)
    if h.offer then offered[#offered + 1] = h end
  end
  for _, h in ipairs(offered) do
    if S.waiting > 0 then R.mark_told(h) end
    local ttl, flags = R.grant_of(h)
    R.post(h.claim.process, pack('>c1c16dddB', 'g', h.claim.id, h.fence, ttl, now, flags))
  end
end

function R.prolong(h)
  if not h.revoked and (h.offer or h.claim.renewed) then
    h.offer = false
    h.fin = now + h.claim.ttl
    R.holder_changed(h)
  end
  return R.grant_of(h)
end

function R.recheck_after(claim)
  local wait = 0
  if S.shut > now then
    wait = S.shut - now
  elseif H then
    wait = H.fin - now
  elseif S.held > 0 then
    local fin = S.ends
    if fin <= now then
      local first = call('ZRANGE', R.side('e'), 0, 0, 'WITHSCORES')
      fin = first[2] and tonumber(first[2]) or now
    end
    wait = math.max(fin - now, 0)
  end
  local w = R.waiters[claim.id]
  if not w or w.gone then return wait end
  local place = R.place_of(w)
  return wait + math.min(stagger_step * math.min(place, stagger_places), stagger_limit)
end

function R.blocker_of(claim)
  if H then return H.claim.payload end
  if S.held > 0 then
    local id = call('ZRANGE', R.side('e'), 0, 0)[1]
    local h = id and R.find_holder(id)
    return h and h.claim.payload or ''
  end
  local w = R.first_in_line()
  return w and w.id ~= claim.id and w.claim.payload or ''
end
