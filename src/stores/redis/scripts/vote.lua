-- As attempt, for one member of a quorum: it never queues, has a wish for the fence, and says for how
-- long this server's word does not count because it lost its state.
-- KEYS: state, observed marker, born. ARGV: claim, name (empty where the key tells it), the fence that
-- is wished for, the longest ttl, '1' where a restart loses nothing.
-- {1, now, fence, ttl, flags, counts after, run id}: granted; {0, now, 0, recheck after, blocker}:
-- blocked; {-1, now, why, number}: refused.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', KEYS[1], KEYS[2])
local state, observed = found[1], found[2]
local raw = ARGV[1]

--@part settings
--@shared

local counts_after, run = R.since_birth(KEYS[3], tonumber(ARGV[4]), ARGV[5] == '1')
local why = R.load(KEYS[1], state, ARGV[2])
if why then return R.refusal(why) end
local claim = R.claim_of(raw)
R.speaker = claim.id
R.wish = tonumber(ARGV[3])
if S.latch > now then return R.refusal(IN_USE_AS_LATCH) end
R.promote()

local h = R.find_holder(claim.id)
if h then
  local ttl, flags = R.prolong(h)
  why = R.commit()
  if why then return R.refusal(why) end
  return { 1, now, h.fence, ttl, flags, counts_after, run }
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
if (H or S.held > 0 or S.waiting > 0) and S.max ~= 0 then return refuse(OTHER_KIND) end
S.max = 0
if math.max(S.held, S.waiting) >= limit.claims then return refuse(TOO_MANY) end

if R.may_take(claim) then
  h = R.grant(claim)
  why = R.commit(true)
  if why then return R.refusal(why) end
  local ttl, flags = R.grant_of(h)
  return { 1, now, h.fence, ttl, flags, counts_after, run }
end
local answer = { 0, now, 0, R.recheck_after(claim), R.blocker_of(claim) }
why = R.commit()
if why then return R.refusal(why) end
return answer
