-- Release and withdrawal, one verb, since a waiter may have become the holder meanwhile.
-- KEYS: state, observed marker. ARGV: claim, remember ('1': keep a tombstone), name.
-- {departure, now}: 0 was waiting, 1 was the holder, 2 gone; {-1, now, why}: refused.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', KEYS[1], KEYS[2])
local state, observed = found[1], found[2]
local raw = ARGV[1]

-- The common case: it holds, nobody waits, nobody watches.
if state and not observed and ARGV[2] == '0' and string.sub(state, 1, 4) == 'hf1x' then
  local last, name, _, fin, _, _, id, at = struct.unpack('>dI2c0dddI4c16', state, 5)
  if fin > now and id == string.sub(raw, 1, 16) then
    local bytes = struct.pack('>c4dI2c0', 'hf1i', last, #name, name)
    -- Its life reaches a day beyond the hold's end.
    local done = redis.pcall('SET', KEYS[1], bytes, 'KEEPTTL')
    if type(done) == 'table' and done.err then
      if not string.find(done.err, 'OOM', 1, true) then return done end
      -- Out of memory: once a script has written, the server lets it write on.
      redis.call('PEXPIRE', KEYS[1], 86400000)
      redis.call('SET', KEYS[1], bytes, 'PX', 86400000)
    end
    return { 1, now }
  end
end

--@part settings
-- Nearly as common: a mutex that others wait for, or one left by somebody who must not come back.
do
--@part mutex
  if ordinary and holder_id == sub(raw, 1, 16) then
    local record
    local head
    if waiting > 0 then
      -- What is stored twice must agree, and be of the kind that is handed over one at a time.
      local first = call('ZRANGE', line, 0, 1)
      head = first[1]
      if #first == math.min(waiting, 2) and head ~= holder_id then
        local found_there = call('HMGET', records, head, holder_id)
        if found_there[1] and not found_there[2] and string.byte(found_there[1], 85) == EXCLUSIVE then
          record = found_there[1]
          channel = base .. 'c:' .. sub(record, 25, 40)
        end
      end
      if record and call('PUBSUB', numsub, channel)[2] == 0 then record = nil end
    end
    if record or waiting == 0 then
      if ARGV[2] == '1' then
        buried = now + unpack_bytes('>d', raw, 41) + tombstone_extra
        tomb = math.max(tomb, buried)
      end
      changed, holder, fin = true, '', nil
      if record then
        local ttl, _, reserved, block = unpack_bytes('>dddI4', record, 49)
        cut, waiting = head, waiting - 1
        ttl = math.min(ttl, reserved)
        fence = math.max(last + 1, now)
        last, fin = fence + math.max(block, 1) - 1, now + ttl
        local others = waiting > 0
        holder = pack('>dddBBBB', fence, fin, now, EXCLUSIVE, 1, others and 1 or 0, 0) .. sub(record, 9)
        letter = pack('>c1c16dddB', 'g', head, fence, ttl, now, others and 3 or 1)
      end
--@part mutex_write
      return { 1, now }
    end
  end
end

--@shared

if not state and ARGV[2] == '0' then return { 2, now } end
local why = R.load(KEYS[1], state, ARGV[3])
if why then return R.refusal(why) end
local claim = R.claim_of(raw)
R.heard(claim.process)
if ARGV[2] == '1' then
  local till = now + claim.ttl + tombstone_extra
  S.tomb = math.max(S.tomb, till)
  R.tombstone = { claim.id, till }
end
-- Not promoted yet: who leaves must not be granted on its way out.
R.drop_ended()
local left = 2
local h = R.find_holder(claim.id)
local w = R.find_waiter(claim.id)
if w then R.cut_waiter(w) end -- beside a hold: what a failure left there
if h then
  R.remove_holder(h)
  R.note(RELEASED, h.claim, h)
  left = 1
elseif w then
  R.note(WITHDRAWN, w.claim)
  left = 0
end
R.promote()
why = R.commit()
if why then return R.refusal(why) end
return { left, now }
