-- Who holds and who waits.
-- KEYS: state, observed marker. {0, now, {holders}, {waiters, in order}, how long it stays shut}, each as
-- it is stored, a waiter with its id before it; at most 10,000 of each.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', KEYS[1], KEYS[2])
local state, observed = found[1], found[2]

--@part settings
--@shared

if not state then
  if redis.call('EXISTS', KEYS[1]) == 1 then return R.refusal(FOREIGN) end
  return { 0, now, {}, {}, 0 }
end
local why = R.load(KEYS[1], state, '')
if why then return R.refusal(why) end
R.promote()
why = R.commit()
if why then return R.refusal(why) end

local holding = {}
local waiting = {}
local granted = {}
if H then
  holding[1] = R.bytes_of(H)
  granted[H.claim.id] = true
end
if S.held > 0 then
  local ids = call('ZRANGE', R.side('e'), 0, 9999)
  for from = 1, #ids, 1000 do
    local page = call('HMGET', R.side('h'), unpack(ids, from, math.min(#ids, from + 999)))
    for _, bytes in ipairs(page) do
      if bytes then
        holding[#holding + 1] = bytes
        granted[sub(bytes, 29, 44)] = true
      end
    end
  end
end
if S.waiting > 0 and R.brief and not R.spilled then
  for _, w in ipairs(R.line) do
    if not w.gone then waiting[#waiting + 1] = pack('>dc0', w.since, w.claim.raw) end
  end
elseif S.waiting > 0 then
  local ids = call('ZRANGE', R.side('w'), 0, 9999)
  for from = 1, #ids, 1000 do
    local page = call('HMGET', R.side('q'), unpack(ids, from, math.min(#ids, from + 999)))
    for _, bytes in ipairs(page) do
      if bytes and not granted[sub(bytes, 9, 24)] then waiting[#waiting + 1] = bytes end
    end
  end
end
return { 0, now, holding, waiting, math.max(S.shut - now, 0) }
