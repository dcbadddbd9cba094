-- Attempts and releases of many, in the order of their coming: what is asked of the server once for all of them
-- takes it as long as a single one does otherwise. Only the common cases, as in attempt and leave.
-- KEYS: of each, state and observed marker. ARGV: a letter for each, 'a' for an attempt and 'l' for a release; then the
-- claim of each, as attempt and leave are given it. The keys tell the names.
-- For each what attempt or leave answers, or false: nothing was done, it is to be asked alone.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.call('MGET', unpack(KEYS))
local letters, name = ARGV[1], ''
local redis, struct, string, math, type = redis, struct, string, math, type -- found faster, again and again
local answers, after = {}, {} -- after[key]: the state that was written, or false
for i = 1, #letters do
  local key, state, observed, raw = KEYS[2 * i - 1], found[2 * i - 1], found[2 * i], ARGV[i + 1]
  local known = after[key]
  if known ~= nil then state = known end
  local answer = false
  if known == false then
    -- One before it was turned away, and is asked before it.
  elseif string.byte(letters, i) == 97 then -- 'a'
--@part free
  else
--@part sole
  end
  -- A failure is told to the one that asks alone.
  if type(answer) == 'table' and answer.err then answer = false end
  answers[i] = answer
  after[key] = answer and state
end
return answers
