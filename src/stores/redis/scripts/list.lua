-- How many hold and wait, for many resources of a lane.
-- KEYS: states, then the observed marker. {now, then for each: holders, waiters,
-- name, how long it stays shut}; holders -1: what is stored there cannot be read.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', unpack(KEYS))
local observed = found[#KEYS]
local answer = { now }

--@part settings
--@shared

local function say(...)
  for _, value in ipairs({ ... }) do answer[#answer + 1] = value end
end

local function look(key, state)
  if R.load(key, state, '') then return say(0, 0, '', 0) end
  R.promote()
  R.commit()
  say((H and 1 or 0) + S.held, S.waiting, S.name, math.max(S.shut - now, 0))
end

-- What a damaged value makes of the rules; anything else is the server's word, and fails the verb.
local function damaged(why)
  return type(why) == 'string' and (string.find(why, 'too short', 1, true)
    or string.find(why, 'attempt to', 1, true)) and true or false
end

for i = 1, #KEYS - 1 do
  local state = found[i]
  if not state or sub(state, 1, 4) == 'hf2i' and #state >= 22 then
    say(0, 0, '', 0)
  else
    local fine, why = pcall(look, KEYS[i], state)
    if not fine and not damaged(why) then error(why, 0) end
    if not fine then say(-1, 0, '', 0) end
  end
end
return answer
