-- Takes holds away: at once (force), or by not renewing them any more (safe).
-- KEYS: state, observed marker. ARGV: '1' force or '0' safe, then the ids meant; none: all.
-- {0, now, then each holder taken, as it was}
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', KEYS[1], KEYS[2])
local state, observed = found[1], found[2]

--@part settings
--@shared

if not state then return { 0, now } end
local why = R.load(KEYS[1], state, '')
if why then return R.refusal(why) end
R.promote()

local meant = {}
if #ARGV > 1 then
  for i = 2, #ARGV do meant[#meant + 1] = R.find_holder(ARGV[i]) end
else
  meant[1] = H
  if R.held_before > 0 then
    for _, id in ipairs(call('HKEYS', R.side('h'))) do meant[#meant + 1] = R.find_holder(id) end
  end
  for id, h in pairs(R.holder_writes) do
    if h and not call('HGET', R.side('h'), id) then meant[#meant + 1] = h end
  end
end

local answer = { 0, now }
for _, h in ipairs(meant) do
  answer[#answer + 1] = R.bytes_of(h)
  if ARGV[1] == '1' then
    R.remove_holder(h)
    R.tell_gone(h, 1)
    R.note(FORCED, h.claim, h)
  else
    h.revoked = true
    R.holder_changed(h)
    R.tell_gone(h, 2)
  end
end
R.promote()
why = R.commit()
if why then return R.refusal(why) end
return answer
