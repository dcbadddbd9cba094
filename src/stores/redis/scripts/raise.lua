-- Renewals at one member of a quorum, of many claims of a lane, each with a fence: only where the claim
-- still holds, it is prolonged and no later fence is below the given one.
-- KEYS: the state of each claim, then the observed marker, then born. ARGV: the longest ttl, '1' where a
-- restart loses nothing, then for each claim: claim, fence.
-- {now, counts after, run id, then for each claim: state, fence, ttl, flags, 0}; state: 0 renewed,
-- 1 held, 3 lost, 4 unknown (the next element is then no fence but an error's text).
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local observed = redis.call('GET', KEYS[#KEYS - 1])

--@part settings
--@shared

local counts_after, run = R.since_birth(KEYS[#KEYS], tonumber(ARGV[1]), ARGV[2] == '1')
local answer = { now, counts_after, run }

local function say(...)
  for _, value in ipairs({ ... }) do answer[#answer + 1] = value end
end

local function raise(i)
  local raw, fence = ARGV[2 * i + 1], tonumber(ARGV[2 * i + 2])
  local why = R.load(KEYS[i], redis.call('GET', KEYS[i]), '')
  if why or not R.existed then return say(3, 0, 0, 0, 0) end
  local id = sub(raw, 1, 16)
  R.speaker = id
  R.promote()
  local h = R.find_holder(id)
  local told = { 3, 0, 0, 0, 0 }
  if h then
    if fence > h.fence then
      h.fence = fence
      R.holder_changed(h)
    end
    local last = fence + math.max(h.claim.block, 1) - 1
    if last > S.last then
      S.last, R.dirty = last, true
    end
    local anew = h.claim.renewed and not h.revoked
    local ttl, flags = R.prolong(h)
    if h.revoked then R.tell_gone(h, 2) end
    R.note(RENEWED, h.claim, h)
    told = { anew and 0 or 1, h.fence, ttl, flags, 0 }
  end
  why = R.commit()
  if type(why) == 'table' then return say(4, why.err, 0, 0, 0) end
  say(unpack(told))
end

for i = 1, #KEYS - 2 do raise(i) end
return answer
