-- dialect=simple: SET NX PX and compare-and-delete, as used by redis-py, redsync and others; the fence beside it is
-- ours. ARGV: the verb, the value that identifies a claim, then what the verb takes. KEYS: the name, then those of the
-- verb. Answers are those of the library's verbs.
local verb, value = ARGV[1], ARGV[2]
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local held = redis.pcall('GET', KEYS[1])
local foreign = type(held) == 'table'
if foreign and not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
-- A safe revocation renames the owner, so that neither side prolongs it any more.
local revoked = value and held == value .. ':revoked'
if revoked then value = held end

-- KEYS: and the tombstone, python-redis-lock's list. ARGV: tombstone's ms or 0; 'revoke': what it holds
-- stays, and is not prolonged.
if verb == 'leave' then
  if held == value and ARGV[4] == 'revoke' then
    if not revoked then redis.call('SET', KEYS[1], value .. ':revoked', 'KEEPTTL') end
    return { 1, now }
  end
  if held == value and KEYS[3] then -- one waiter takes it out and wakes up; it expires as in the library
    redis.call('DEL', KEYS[3])
    redis.call('LPUSH', KEYS[3], '1')
    redis.call('PEXPIRE', KEYS[3], 1000)
  end
  if held == value then redis.call('DEL', KEYS[1]) end
  if tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[2], '1', 'PX', tonumber(ARGV[3])) end
  return { held == value and 1 or 2, now }
end

-- One claim. KEYS: and the fence. ARGV: ttl in ms, renewed ('0': only looks), how many fences; in a quorum, the
-- least that its fence must be.
if verb == 'renew' and held ~= value then return { now, 3, 0, 0, 0, 0 } end
if foreign then return { -1, now, 8, 0 } end
-- {0, now, ms left or -1, '', how many hold, the value}
if verb == 'inspect' then
  return { 0, now, held and redis.call('PTTL', KEYS[1]) or 0, '', held and 1 or 0, held or nil }
end
local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
if verb == 'renew' then
  local fence = math.max(last - tonumber(ARGV[5]) + 1, 0)
  local least = tonumber(ARGV[6])
  if least and least > fence then
    fence = least
    redis.call('SET', KEYS[2], string.format('%.0f', fence + tonumber(ARGV[5]) - 1), 'PX', 86400000 + tonumber(ARGV[3]))
  end
  if ARGV[4] == '0' or revoked then return { now, 1, fence, redis.call('PTTL', KEYS[1]) * 1000, 0, 0 } end
  redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[3]))
  return { now, 0, fence, tonumber(ARGV[3]) * 1000, 0, 0 }
end


-- An attempt. KEYS: and the fence, the tombstone. ARGV: ttl in ms, not after (0: none), how many fences; in a quorum,
-- the proposed fence: a grant then says which server this is.
local ttl, not_after = tonumber(ARGV[3]), tonumber(ARGV[4])
local others = tonumber(ARGV[5]) - 1 -- fences that are reserved for the process of the holder
local proposed = tonumber(ARGV[6])
local server = proposed and string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
if held == value then
  if revoked then ttl = redis.call('PTTL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ttl) end
  return { 1, now, math.max(last - others, 0), ttl * 1000, 0, 0, server }
end
if held then
  local rest = redis.call('PTTL', KEYS[1]) -- 0: less than a millisecond; below: it has no end
  return { 0, now, 0, rest < 0 and 1000000 or math.max(rest, 1) * 1000, '' }
end
if redis.call('EXISTS', KEYS[3]) == 1 then return { -1, now, 2, 0 } end
if not_after > 0 and now > not_after then return { -1, now, 3, 0 } end
local fence = math.max(last + 1, now)
if proposed and proposed > last and math.abs(proposed - now) <= 1000000 then fence = proposed end
redis.call('SET', KEYS[2], string.format('%.0f', fence + others), 'PX', 86400000 + ttl)
redis.call('SET', KEYS[1], value, 'NX', 'PX', ttl)
return { 1, now, fence, ttl * 1000, 0, 0, server }
