-- Takes holds away: at once (force), or by not renewing them any more (safe).
-- KEYS: state, observed marker. ARGV: '1' force or '0' safe, then the ids meant; none: all.
-- {0, now, then each holder taken, as it was}
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', KEYS[1], KEYS[2])
local state, observed = found[1], found[2]

--@shared

if not state then return { 0, now } end
local why = load(KEYS[1], state, '')
if why then return refusal(why) end
promote()

local meant = {}
if #ARGV > 1 then
  for i = 2, #ARGV do meant[#meant + 1] = find_holder(ARGV[i]) end
else
  meant[1] = H
  if held_before > 0 then
    for _, id in ipairs(call('HKEYS', side('h'))) do meant[#meant + 1] = find_holder(id) end
  end
  for id, h in pairs(holder_writes) do
    if h and not call('HGET', side('h'), id) then meant[#meant + 1] = h end
  end
end

local answer = { 0, now }
for _, h in ipairs(meant) do
  answer[#answer + 1] = bytes_of(h)
  if ARGV[1] == '1' then
    remove_holder(h)
    tell_gone(h, 1)
    note(FORCED, h.claim, h)
  else
    h.revoked = true
    holder_changed(h)
    tell_gone(h, 2)
  end
end
promote()
why = commit()
if why then return refusal(why) end
return answer
