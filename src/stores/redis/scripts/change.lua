-- Downgrade (to shared) or upgrade (to exclusive) of a hold.
-- KEYS: state, observed marker. ARGV: claim, mode.
-- {1, now, fence, ttl, flags}; {-1, now, why}: 10 not held, 11 a semaphore, 12 other readers hold it,
-- 13 a reader's hold ended abnormally.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', KEYS[1], KEYS[2])
local state, observed = found[1], found[2]

--@part settings
--@shared

if not state then return R.refusal(10) end
local why = R.load(KEYS[1], state, '')
if why then return R.refusal(why) end
local claim = R.claim_of(ARGV[1])
local to = tonumber(ARGV[2])
R.promote()

local function refuse(reason)
  why = R.commit()
  return R.refusal(why or reason)
end

local h = R.find_holder(claim.id)
if not h then return refuse(10) end
if to == PERMIT or h.mode == PERMIT then return refuse(11) end
if h.mode ~= to then
  -- An upgrade never waits: two readers that did would wait for each other.
  if to == EXCLUSIVE and S.held > 1 then return refuse(12) end
  if to == EXCLUSIVE and S.shut > now then return refuse(13) end
  R.remove_holder(h)
  h.mode = to
  h.fence = R.next_fence(h.claim.block)
  R.add_holder(h)
  R.moved = claim.id
  R.note(GRANTED, h.claim, h)
  R.promote()
end
local ttl, flags = R.prolong(h)
why = R.commit()
if why then return R.refusal(why) end
return { 1, now, h.fence, ttl, flags }
