-- Release and withdrawal, one verb, since a waiter may have become the holder meanwhile.
-- KEYS: state, observed marker. ARGV: of the claim its id, process and ttl; remember ('1': keep a tombstone;
-- '2': unless the claim is here, since its only request came before; '0': no, but a delay counts from its
-- end; absent or empty: no); name (absent or empty where the key tells it).
-- {departure, now}: 0 was waiting, 1 was the holder, 2 gone; a number: was the holder, it is now, or 0
-- where nobody looked; {-1, now, why}: refused.
local key = KEYS[1]
local found = redis.call('MGET', key, KEYS[2])
local state, observed = found[1], found[2]
local raw = ARGV[1]

local remember, if_absent = ARGV[2] == '1', ARGV[2] == '2'

if (ARGV[2] or '') == '' then
  local answer
--@part sole
  if answer then return answer end
end

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]

--@part settings
-- Nearly as common: a mutex that others wait for, or one left by somebody who must not come back.
do
--@part mutex
  local decided = false
  if ordinary and holder_id == sub(raw, 1, 16) then
    local heir, ttl, reserved, block -- the claim that is next, or its id; of it
    local as_stored = state
    if packed and line_at == rest_at then
      -- The next four of the rest come into the state; now and then all, since its key grows until then.
      local last_id = rest_from > limit.rest and #state or math.min(#state, rest_at + 79)
      local rest_end = unpack_bytes('>I4', state, last_id - 3)
      local found_there = call('GETRANGE', base .. 'r' .. tail, rest_from, rest_end - 1)
      if #found_there == rest_end - rest_from then
        state = sub(state, 1, rest_at - 1) .. found_there .. sub(state, last_id + 1)
        rest_at, rest_from, refilled = rest_at + #found_there, rest_end, true
        if rest_at > #state then rest_at = 0 end
      end
    end
    if packed and waiting > 0 and line_at ~= rest_at then
      local process
      _, _, _, heir, process, _, ttl, _, reserved, block = unpack_bytes('>I2ddc16c16ddddI4', state, line_at)
      channel = base .. 'c:' .. process
    elseif waiting > 0 and not packed then
      -- What is stored twice must agree.
      local first = call('ZRANGE', line, 0, 1)
      if #first == math.min(waiting, 2) and first[1] ~= holder_id then
        local found_there = call('HMGET', records, first[1], holder_id)
        heir = found_there[1] and not found_there[2] and sub(found_there[1], 9)
        -- Of the kind that is handed over one at a time.
        if heir and string.byte(heir, 77) ~= EXCLUSIVE then heir = nil end
        if heir then
          ttl, _, reserved, block = unpack_bytes('>dddI4', heir, 41)
          channel = base .. 'c:' .. sub(heir, 17, 32)
          cut = first[1]
        end
      end
    end
    -- To somebody who hears of it.
    if heir and call('PUBSUB', numsub, channel)[2] == 0 then heir = nil end
    if heir or waiting == 0 then
      decided, changed, holds, fin = true, true, false, nil
      if packed then at = line_at end
      if heir then
        if packed then
          line_at = at + 2 + unpack_bytes('>I2', state, at)
          waiting = line_at <= #state and 1 or 0
        else
          waiting, whose = waiting - 1, heir
        end
        ttl = math.min(ttl, reserved)
        fence = math.max(last + 1, now)
        last, fin = fence + math.max(block, 1) - 1, now + ttl
        holds, since, offer, wanted = true, now, 1, waiting > 0 and 1 or 0
        letter = pack('>c1c16dddB', 'g', heir, fence, ttl, now, 1 + 2 * wanted)
      end
    end
    if not decided then state = as_stored end
  end

--@part crowd
--@part crowd_leave
  if decided then
    if remember then
      buried = now + unpack_bytes('>d', raw, 33) + tombstone_extra
      tomb = math.max(tomb, buried)
    end
--@part write
    return now
  end
end

--@shared

if not state and not remember and not if_absent then return { 2, now } end
local why = R.load(KEYS[1], state, ARGV[3] or '')
if why then return R.refusal(why) end
local id, _, ttl = unpack_bytes('>c16c16d', raw)
-- Not promoted yet: who leaves must not be granted on its way out.
R.drop_ended()
local left = 2
local h = R.find_holder(id)
local w = R.find_waiter(id)
if w then R.cut_waiter(w) end -- beside a hold: what a failure left there
if h then
  R.remove_holder(h)
  R.note(RELEASED, h.claim, h)
  left = 1
elseif w then
  R.note(WITHDRAWN, w.claim)
  left = 0
end
if remember or if_absent and left == 2 then
  local till = now + ttl + tombstone_extra
  S.tomb = math.max(S.tomb, till)
  R.tombstone = { id, till }
end
R.promote()
why = R.commit()
if why then return R.refusal(why) end
return { left, now }
