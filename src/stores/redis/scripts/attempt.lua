-- Places a claim if it is new, answers where it stands if not.
-- KEYS: state, observed marker. ARGV: claim, name (absent or empty where the key tells it).
-- {1, now, fence, ttl, flags}: granted; a number: granted, it is now and the fence, the ttl is the claim's,
-- no flags (a table takes the server as long as a command); a string with now, recheck after, queued and
-- blocker: blocked; {-1, now, why, number}: refused.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local key = KEYS[1]
local found = redis.call('MGET', key, KEYS[2])
local state, observed = found[1], found[2]
local raw, name = ARGV[1], ARGV[2] or ''

local answer
--@part free
if answer then return answer end

--@part settings
-- Nearly as common: a mutex that somebody holds or waits for.
do
--@part mutex
  local id = sub(raw, 1, 16)
  local not_after, ttl, _, _, block, amount, most, wish, _, queued =
    unpack_bytes('>ddddI4I4I4BBB', raw, 33)
  if ordinary and wish <= SHARED and id ~= holder_id and (not_after == 0 or now <= not_after)
    and (tomb <= now or tonumber(call('ZSCORE', base .. 't' .. tail, id) or 0) <= now) then
    if holds then
      local place, known
      if brief then
        known = waiting > 0 and string.find(state, id, line_at, true)
        -- Bytes of the line that are here, and of the rest.
        local here, there, rest_end = waiting > 0 and #state + 1 - line_at or 0, 0, 0
        if packed and rest_at > 0 then
          rest_end = unpack_bytes('>I4', state, #state - 3)
          here, there = rest_at - line_at, rest_end - rest_from
        end
        if known and (rest_at == 0 or known < rest_at) then
          local from, count = line_at, 0
          while from + 18 < known do from, count = from + 2 + unpack_bytes('>I2', state, from), count + 1 end
          if from + 18 == known then place, life_at, headed, changed = count, from + 9, false, true end
        elseif not known and queued == 1 and wish == EXCLUSIVE and here + there + #raw + 18 <= limit.packed then
          added = pack('>I2ddc0', #raw + 16, now, now + waiter_lease, raw)
          place, changed, grows, headed = math.ceil((here + there) / #added), true, true, false -- about
          if there > 0 or here > 0 and here + #added > limit.head then
            if there == 0 then rest_at, rest_from, headed = #state + 1, 0, true end
            resting, resting_at = added, rest_end
            added = pack('>c16I4', id, rest_end + #added)
          end
        end
      elseif call('HEXISTS', records, id) == 1 then
        beat, place = id, call('ZRANK', line, id) or 0
      elseif queued == 1 and waiting < limit.claims then
        joined, place = id, waiting
        changed, grows = true, true
        seq = seq + 1
      end
      if grows then
        -- In an empty line what is left of the one before it will do: nobody is dead before that.
        if dead <= now or now + waiter_lease < dead then dead, headed = now + waiter_lease, true end
        waiting = waiting + 1
      end
      if place then
        local recheck =
          fin - now + math.min(stagger_step * math.min(place, stagger_places), stagger_limit)
        local soon = since + wanted_after - now
        channel = base .. 'c:' .. holder_process
        if wanted == 0 and soon > 0 then
          -- Mostly it comes back before that. If not, the first in line tells it then.
          if place == 0 then recheck = math.min(recheck, soon) end
        elseif wanted == 0 and call('PUBSUB', numsub, channel)[2] > 0 then
          wanted, headed, changed = 1, true, true
          letter = pack('>c1c16', 'w', holder_id)
        end
        local need = waiter_lease + 60000000
        if not brief and line_side < now + need then
          line_side, changed = math.max(line_side, now + 2 * need), true
          till = string.format('%.0f', math.floor(line_side / 1000))
        end
        answer = pack('>ddBc0', now, recheck, 1, (unpack_bytes('>I2c0', state, claim_at + 80)))
      elseif queued == 0 and not known then
        answer = pack('>ddBc0', now, fin - now, 0, (unpack_bytes('>I2c0', state, claim_at + 80)))
      end
    elseif wish == EXCLUSIVE then
      local mine
      if waiting == 0 then
        grows, packed = true, false
      elseif packed then
        mine = at ~= rest_at and sub(state, at + 18, at + 33) == id
          and sub(state, at + 18, at + 1 + unpack_bytes('>I2', state, at))
      else
        local first = call('ZRANGE', line, 0, 1)
        mine = first[1] == id and #first == math.min(waiting, 2) and call('HGET', records, id)
        if mine then mine, cut = sub(mine, 9), id end
      end
      -- The one whose turn it is; granted as it came into the line.
      if mine then
        raw, waiting = mine, waiting - 1
        if packed then waiting = at + 18 + #mine <= #state and 1 or 0 end
        _, ttl, _, _, block = unpack_bytes('>ddddI4', raw, 33)
      end
      if mine or grows then
        fence = math.max(last + 1, now)
        last, fin, changed = fence + math.max(block, 1) - 1, now + ttl, true
        holds, whose, since, offer, wanted = true, raw, now, 0, waiting > 0 and 1 or 0
        answer = { 1, now, fence, ttl, 2 * wanted }
      end
    end
  end

--@part crowd
--@part crowd_attempt
  if answer then
--@part write
    return answer
  end
end

--@shared

local why = R.load(KEYS[1], state, ARGV[2] or '')
if why then return R.refusal(why) end
local claim = R.claim_of(raw)
R.speaker = claim.id
if S.latch > now then return R.refusal(IN_USE_AS_LATCH) end
R.promote()

local h = R.find_holder(claim.id)
if h then
  local ttl, flags = R.prolong(h)
  why = R.commit()
  if why then return R.refusal(why) end
  return { 1, now, h.fence, ttl, flags }
end

local function blocked(w)
  -- Asked before the writing: reading what was written would show it twice.
  local answer = pack('>ddBc0', now, R.recheck_after(claim), w and 1 or 0, R.blocker_of(claim))
  why = R.commit(w and w == R.joined)
  if why then return R.refusal(why) end
  return answer
end

local w = R.find_waiter(claim.id)
if w then
  R.keep_place(w)
  R.tell_wanted()
  return blocked(w)
end

local function refuse(reason, number)
  why = R.commit()
  return R.refusal(why or reason, number)
end

if S.tomb > now then
  local till = call('ZSCORE', R.side('t'), claim.id)
  if till and tonumber(till) > now then return refuse(LEFT_BEFORE) end
end
if claim.not_after > 0 and now > claim.not_after then return refuse(TOO_LATE) end
if claim.mode == PERMIT and (claim.permits == 0 or claim.permits > claim.max) then
  return refuse(BAD_PERMITS)
end
local max = claim.mode == PERMIT and claim.max or 0
if H or S.held > 0 or S.waiting > 0 then
  if (max == 0) ~= (S.max == 0) then return refuse(OTHER_KIND) end
  if max ~= S.max then return refuse(OTHER_MAX, S.max) end
else
  S.max = max
end
if math.max(S.held, S.waiting) >= limit.claims then return refuse(TOO_MANY) end

if R.may_take(claim) then
  h = R.grant(claim)
  why = R.commit(true)
  if why then return R.refusal(why) end
  local ttl, flags = R.grant_of(h)
  return { 1, now, h.fence, ttl, flags }
end
if not claim.queued then return blocked(nil) end
R.join(claim)
R.note(QUEUED, claim)
R.tell_wanted()
R.promote()
h = R.find_holder(claim.id)
if h then
  why = R.commit(true)
  if why then return R.refusal(why) end
  local ttl, flags = R.grant_of(h)
  return { 1, now, h.fence, ttl, flags }
end
return blocked(R.joined)
