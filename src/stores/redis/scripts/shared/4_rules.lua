-- The grant rules, as in stores/memory/ledger: who may be granted, what has ended, who is next.

local function heard(process)
  speaker_process = process
  hush[process] = false
  if S.silent == 0 then return end
  if call('HEXISTS', side('q'), 's' .. process) == 1 then
    cut_hush[#cut_hush + 1] = 's' .. process
    S.silent = S.silent - 1
    dirty = true
  end
end

local function silent(process)
  local known = hush[process]
  if known == nil then
    known = false
    if S.silent > 0 then
      local till = call('HGET', side('q'), 's' .. process)
      known = till and unpack_bytes('>d', till) > now or false
    end
    hush[process] = known
  end
  return known
end

local function free_for(claim)
  if S.shut > now or H then return false end
  if claim.mode == EXCLUSIVE then return S.held == 0 end
  if claim.mode == SHARED then return true end
  return S.permits + claim.permits <= claim.max
end

-- Who speaks can be granted by the answer; who is passed over must not keep others waiting.
local function eligible(w)
  if w.id == speaker and free_for(w.claim) then return true end
  if silent(w.claim.process) then return false end
  return reachable(w.claim.process)
end

local function next_in_line()
  for w in in_line() do
    if eligible(w) then return w end
  end
end

local function hands_over(w)
  if w.id == speaker or w.claim.fair or S.waiting >= 2 then return true end
  return now - w.since > hand_over_after
end

local function may_take(claim)
  if not free_for(claim) then return false end
  if S.waiting == 0 then return true end
  for w in in_line() do
    if eligible(w) then
      if claim.fair or w.claim.fair then return false end
      if claim.mode == SHARED and w.claim.mode == EXCLUSIVE then return false end
    end
  end
  return S.waiting <= limit.line
end

local wish -- of a quorum, for the next fence
local wish_slack = 1000000

-- A wish is taken near this clock, on both sides: not above it, or one client would push the fences of
-- all ahead; not below it, or a server that forgot its last fence could repeat it.
local function next_fence(block)
  local fence = math.max(S.last + 1, now)
  if wish and wish > S.last and math.abs(wish - now) <= wish_slack then fence = wish end
  S.last = fence + math.max(block, 1) - 1
  dirty = true
  return fence
end

local function grant(claim)
  local w = waiters[claim.id]
  if w and not w.gone then cut_waiter(w) end
  S.told = ''
  local offer = speaker ~= claim.id
  local h = {
    claim = claim, fence = next_fence(claim.block), since = now, mode = claim.mode, offer = offer,
    told = not offer and S.waiting > 0, revoked = false,
    fin = now + (offer and math.min(claim.ttl, claim.offer) or claim.ttl),
  }
  note(GRANTED, claim, h)
  add_holder(h)
  return h
end

local function ended(h)
  remove_holder(h)
  -- Nobody said goodbye: it may be at work still, and where no fence is checked only time helps.
  if h.claim.delay > 0 then S.shut = math.max(S.shut, h.fin + h.claim.delay) end
  -- Its other waiters would each cost the next ones an offer.
  local process = h.claim.process
  if h.offer and not h.revoked and process ~= speaker_process then
    if not silent(process) then S.silent = S.silent + 1 end
    hush[process] = true
    put_hush['s' .. process] = pack('>d', now + waiter_lease)
  end
  note(EXPIRED, h.claim, h)
end

-- The ends were lost, or one of them: they are written anew from the holders.
local function mend_ends()
  for _, bytes in ipairs(call('HVALS', side('h'))) do
    local id = sub(bytes, 29, 44)
    local h = find_holder(id)
    if h and h.fin <= now then
      ended(h)
    elseif h then
      holder_changed(h)
    end
  end
end

-- Once: it compares what is stored, and nothing else ends within a script.
local function drop_ended()
  if dropped then return end
  dropped = true
  check_held()
  if H and H.fin <= now then ended(H) end
  if S.held > 0 and S.ends <= now then
    local over = call('ZRANGEBYSCORE', side('e'), '-inf', now, 'LIMIT', 0, limit.promote)
    for _, id in ipairs(over) do
      local h = find_holder(id)
      if h and h.fin <= now then ended(h) end
      if not h and holders[id] == false and holder_writes[id] == nil then holder_writes[id] = false end
    end
    local next_end = call('ZRANGE', side('e'), #over, #over, 'WITHSCORES')
    S.ends, dirty = next_end[2] and tonumber(next_end[2]) or now, true
    if call('ZCARD', side('e')) ~= held_before then mend_ends() end
  end
  if S.waiting > 0 and S.dead <= now then
    local over = call('ZRANGEBYSCORE', side('d'), '-inf', now, 'LIMIT', 0, limit.promote)
    for _, id in ipairs(over) do
      local w = find_waiter(id)
      if w then
        cut_waiter(w)
        note(WITHDRAWN, w.claim)
      elseif not waiters[id] then
        cut_waiters[#cut_waiters + 1] = id
      end
    end
    local next_end = call('ZRANGE', side('d'), #over, #over, 'WITHSCORES')
    S.dead, dirty = next_end[2] and tonumber(next_end[2]) or now + waiter_lease, true
  end
end

-- What a claim is answered.
local function grant_of(h)
  local ttl = h.fin - now
  if h.offer then ttl = math.min(ttl, h.claim.offer) end
  return ttl, (h.offer and 1 or 0) + (S.waiting > 0 and 2 or 0)
end

local function promote()
  drop_ended()
  if S.waiting == 0 or S.shut > now or H then return end
  local offered = {}
  local handing = false
  for _ = 1, limit.promote do
    local w = next_in_line()
    if not w or not free_for(w.claim) then break end
    handing = handing or hands_over(w)
    if not handing then
      if S.told ~= w.id then
        S.told, dirty = w.id, true
        post(w.claim.process, pack('>c1c16', 'f', w.id))
      end
      break
    end
    local h = grant(w.claim)
    if h.offer then offered[#offered + 1] = h end
  end
  for _, h in ipairs(offered) do
    if S.waiting > 0 then mark_told(h) end
    local ttl, flags = grant_of(h)
    post(h.claim.process, pack('>c1c16dddB', 'g', h.claim.id, h.fence, ttl, now, flags))
  end
end

local function prolong(h)
  if not h.revoked and (h.offer or h.claim.renewed) then
    h.offer = false
    h.fin = now + h.claim.ttl
    holder_changed(h)
  end
  return grant_of(h)
end

local function recheck_after(claim)
  local wait = hand_over_after
  if S.shut > now then
    wait = S.shut - now
  elseif H then
    wait = H.fin - now
  elseif S.held > 0 then
    local fin = S.ends
    if fin <= now then
      local first = call('ZRANGE', side('e'), 0, 0, 'WITHSCORES')
      fin = first[2] and tonumber(first[2]) or now
    end
    wait = math.max(fin - now, 0)
  end
  local w = waiters[claim.id]
  if not w or w.gone then return wait end
  local place = w == joined and S.waiting - 1 or call('ZRANK', side('w'), claim.id) or 0
  return wait + math.min(stagger * math.min(place, stagger_places), stagger_limit)
end

local function blocker_of(claim)
  if H then return H.claim.payload end
  if S.held > 0 then
    local id = call('ZRANGE', side('e'), 0, 0)[1]
    local h = id and find_holder(id)
    return h and h.claim.payload or ''
  end
  local w = first_in_line()
  return w and w.id ~= claim.id and w.claim.payload or ''
end
