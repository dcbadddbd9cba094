-- How many hold and wait, for many resources of a lane.
-- KEYS: states, then the observed marker. {now, then for each: holders, waiters,
-- name, how long it stays shut}
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local observed = redis.call('GET', KEYS[#KEYS])
local answer = { now }

--@part settings
--@shared

for i = 1, #KEYS - 1 do
  local state = redis.call('TYPE', KEYS[i]).ok == 'string' and redis.call('GET', KEYS[i])
  if state and not R.load(KEYS[i], state, '') then
    R.promote()
    R.commit()
    answer[#answer + 1] = (H and 1 or 0) + S.held
    answer[#answer + 1] = S.waiting
    answer[#answer + 1] = S.name
    answer[#answer + 1] = math.max(S.shut - now, 0)
  else
    answer[#answer + 1] = 0
    answer[#answer + 1] = 0
    answer[#answer + 1] = ''
    answer[#answer + 1] = 0
  end
end
return answer
