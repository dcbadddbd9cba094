-- Prolongs holds, keeps places in line, and finds grants whose push was lost: many claims of a lane.
-- KEYS: the state of each claim, then the observed marker. ARGV: the claims.
-- {now, then for each claim: state, fence, ttl, flags, recheck after}; state: 0 renewed, 1 held,
-- 2 waiting, 3 lost, 4 unknown (the next element is then no fence but an error's text).
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', unpack(KEYS))
local observed = found[#KEYS]
local answer = { now }
local touched = {}
local rest = {}

local function say(i, ...)
  local at = 5 * i - 3
  for n, value in ipairs({ ... }) do answer[at + n - 1] = value end
end

-- The common case: it holds, nobody waits, nobody watches, nothing was taken away.
for i, raw in ipairs(ARGV) do
  local state = found[i]
  local plain = false
  if state and not observed and not touched[KEYS[i]] and string.sub(state, 1, 4) == 'hf2x' then
    local last, kept, name, fence, fin, since, marks, id = struct.unpack('>ddI2c0dddI4c16', state, 5)
    local ttl = struct.unpack('>d', raw, 41)
    local renewed = string.byte(raw, 80)
    if marks == 0 and fin > now and renewed == 1 and id == string.sub(raw, 1, 16) then
      fin = now + ttl
      local life = kept < fin
      if life then kept = fin + ttl end
      local bytes = struct.pack('>c4ddI2c0dddI4c0', 'hf2x', last, kept, #name, name, fence, fin, since, 0,
        string.sub(state, #name + 51))
      local done
      if life then
        done = redis.pcall('SET', KEYS[i], bytes, 'PX', 86400000 + math.ceil(2 * ttl / 1000))
      else
        done = redis.pcall('SET', KEYS[i], bytes, 'KEEPTTL')
      end
      if type(done) ~= 'table' or not done.err then
        plain = true
        say(i, 0, fence, ttl, 0, 0)
      end
    end
  end
  touched[KEYS[i]] = true
  if not plain then rest[#rest + 1] = i end
end
if #rest == 0 then return answer end

--@part settings
--@shared

local function renew(i)
  local why = R.load(KEYS[i], redis.call('GET', KEYS[i]), '')
  if why then return say(i, 3, 0, 0, 0, 0) end
  if not R.existed then return say(i, 3, 0, 0, 0, 0) end
  local id = sub(ARGV[i], 1, 16)
  R.speaker = id
  R.promote()
  local h = R.find_holder(id)
  local w = not h and R.find_waiter(id)
  local told = { 3, 0, 0, 0, 0 }
  if h then
    local anew = h.claim.renewed and not h.revoked
    local ttl, flags = R.prolong(h)
    if h.revoked then R.tell_gone(h, 2) end
    R.note(RENEWED, h.claim, h)
    told = { anew and 0 or 1, h.fence, ttl, flags, 0 }
  elseif w then
    R.keep_place(w)
    R.tell_wanted()
    told = { 2, 0, 0, 0, R.recheck_after(w.claim) }
  end
  why = R.commit()
  if type(why) == 'table' then return say(i, 4, why.err, 0, 0, 0) end
  say(i, unpack(told))
end

for _, i in ipairs(rest) do renew(i) end
return answer
