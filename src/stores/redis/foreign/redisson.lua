-- dialect=redisson: an RLock, a hash of owners and counts, or an RFairLock, the same with a queue beside it. The
-- fence is the token of RFencedLock, which never expires: a counter that started over would go backwards for its
-- users in Java. ARGV: the verb, the owner, then what the verb takes. KEYS: the name, then those of the verb. Answers
-- are those of the library's verbs.
local verb, owner = ARGV[1], ARGV[2] or ''
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local found = redis.pcall('HEXISTS', KEYS[1], owner)
local foreign, mine = type(found) == 'table', found == 1
if foreign and not string.find(found.err, 'WRONGTYPE', 1, true) then return found end
-- Redisson's read-write lock also has a hash of this name, and only looks at `mode`: it ignores our field.
local other_type = not foreign and redis.call('HEXISTS', KEYS[1], 'mode') == 1
-- A safe revocation renames the owner, so that neither side prolongs it any more.
local revoked = not foreign and not mine and redis.call('HEXISTS', KEYS[1], owner .. ':revoked') == 1
if revoked then owner, mine = owner .. ':revoked', true end

-- The queue of Redisson's fair lock: a list of owners, and until when each is waited for, in ms since 1970. A waiter
-- adds its own patience to the time of the last one; when it leaves, it subtracts that from those behind it.
local tail = ':' .. (string.find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}')
local channel, queue, ends =
  'redisson_lock__channel' .. tail, 'redisson_lock_queue' .. tail, 'redisson_lock_timeout' .. tail
local patience, theirs = 5000, 300000 -- ours, and that of Redisson's lock()

-- The first in the queue, as Redisson's scripts find it, by our clock. nil: nobody, or with
-- redis.pcall: we may not look.
local function first_waiter(ask)
  while true do
    local first = ask('LINDEX', queue, 0)
    if type(first) ~= 'string' then return nil end
    local over = ask('ZSCORE', ends, first)
    if type(over) ~= 'string' or tonumber(over) > now / 1000 then return first end
    ask('ZREM', ends, first)
    if type(ask('LPOP', queue)) ~= 'string' then return nil end
  end
end

-- It is notified on its own channel.
local function wake(first)
  if first then redis.pcall('PUBLISH', channel .. ':' .. first, '0') end
end

-- Joins the queue, from now on for as long as those ahead of it are waited for, and a little longer: if it asks again
-- before then, its place is kept, and a process that died delays those behind it only by this little.
local function stand_in_line()
  local place = redis.call('LPOS', queue, owner) or redis.call('RPUSH', queue, owner) - 1
  local ahead = place > 0 and redis.call('LRANGE', queue, 0, place - 1) or {}
  local until_ms = math.floor(now / 1000)
  for _, each in ipairs(ahead) do -- Java's threads count from 1: those with 0 are ours
    until_ms = until_ms + (string.sub(each, -2) == ':0' and patience or theirs)
  end
  local before = #ahead > 0 and tonumber(redis.call('ZSCORE', ends, ahead[#ahead]) or 0) or 0
  redis.call('ZADD', ends, string.format('%.0f', math.max(until_ms, before) + patience), owner)
end

local function leave_line()
  local place = redis.call('LPOS', queue, owner)
  if not place then return false end
  for _, each in ipairs(redis.call('LRANGE', queue, place + 1, -1)) do
    redis.call('ZADD', ends, 'XX', 'INCR', -patience, each)
  end
  redis.call('ZREM', ends, owner)
  redis.call('LREM', queue, 0, owner)
  return true
end

-- Notifies the waiters, as Redisson's unlock does. KEYS: and the tombstone. ARGV: tombstone's ms or 0; 'fair': it may
-- be in the queue; 'revoke': what it holds stays, and is not prolonged.
if verb == 'leave' then
  if ARGV[4] == 'revoke' then
    if mine and not revoked then
      redis.call('HSET', KEYS[1], owner .. ':revoked', 1)
      redis.call('HDEL', KEYS[1], owner)
    end
    return { mine and 1 or 2, now }
  end
  local waited = ARGV[4] == 'fair' and leave_line()
  if mine then
    redis.call('PUBLISH', channel, '0') -- first: if it is not allowed, the lock stays held
    wake(first_waiter(redis.pcall))
    redis.call('HDEL', KEYS[1], owner) -- a hash without fields is gone
  elseif waited and redis.call('EXISTS', KEYS[1]) == 0 then -- it may have been the one that was notified
    wake(first_waiter(redis.pcall))
  end
  -- After a deletion this is allowed even without memory.
  if tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[2], '1', 'PX', tonumber(ARGV[3])) end
  return { mine and 1 or waited and 0 or 2, now }
end

-- One claim. KEYS: and the fence. ARGV: ttl in ms, renewed ('0': only looks), how many fences.
if verb == 'renew' and other_type then -- a read-write lock was taken beside us: we do not exclude it
  redis.call('HDEL', KEYS[1], owner)
  return { now, 3, 0, 0, 0, 0 }
end
if verb == 'renew' and not mine then return { now, 3, 0, 0, 0, 0 } end
if verb == 'renew' then
  local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
  local fence = math.max(last - tonumber(ARGV[5]) + 1, 0)
  if ARGV[4] == '0' or revoked then return { now, 1, fence, redis.call('PTTL', KEYS[1]) * 1000, 0, 0 } end
  redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[3]))
  return { now, 0, fence, tonumber(ARGV[3]) * 1000, 0, 0 }
end

-- Also for a read-write lock and a semaphore. {0, now, ms left or -1, mode or '', how many hold, owners, waiters of its
-- fair lock; of a semaphore, when each of its permits ends}
local free = verb == 'inspect' and foreign and redis.pcall('GET', KEYS[1])
if type(free) == 'string' and tonumber(free) then
  local ms = math.floor(now / 1000)
  local permits =
    redis.call('ZRANGEBYSCORE', string.sub(tail, 2) .. ':timeout', string.format('%.0f', ms), '+inf', 'WITHSCORES')
  local answer = { 0, now, -1, 'permit', #permits / 2 }
  for i = 1, #permits, 2 do answer[#answer + 1] = permits[i] end
  for i = 2, #permits, 2 do -- Redisson's "never" is some 29,000 years after 1970
    local left = tonumber(permits[i]) - ms
    answer[#answer + 1] = left < 1e12 and left or -1
  end
  return answer
end
if verb == 'inspect' and not foreign then
  local answer = { 0, now, redis.call('PTTL', KEYS[1]), redis.call('HGET', KEYS[1], 'mode') or '', 0 }
  for _, each in ipairs(redis.call('HKEYS', KEYS[1])) do
    if not (other_type and each == 'mode') then answer[#answer + 1] = each end
  end
  answer[5] = #answer - 5
  local line = redis.pcall('LRANGE', queue, 0, 999)
  for _, each in ipairs(line.err and {} or line) do answer[#answer + 1] = each end
  return answer
end

-- An attempt. A repetition by the same claim does not count up. KEYS: and the fence, the tombstone. ARGV: ttl in ms,
-- not after (0: none), how many fences, two for others, 'fair' or '', whether it waits.
if foreign then return { -1, now, 8, 0 } end
if other_type then return { -1, now, 17, 0 } end
local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
local ttl, not_after = tonumber(ARGV[3]), tonumber(ARGV[4])
local others = tonumber(ARGV[5]) - 1 -- fences that are reserved for the process of the holder
if mine then
  if revoked then ttl = redis.call('PTTL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ttl) end
  return { 1, now, math.max(last - others, 0), ttl * 1000, 0 }
end
local fair = ARGV[8] == 'fair'
local held = redis.call('EXISTS', KEYS[1]) == 1
local rest = held and redis.call('PTTL', KEYS[1]) or -1 -- 0: less than a millisecond; below: it has no end
local blocked = { 0, now, 0, rest < 0 and 1000000 or math.max(rest, 1) * 1000, '', 0 }
if held and not fair then return blocked end
if redis.call('EXISTS', KEYS[3]) == 1 then return { -1, now, 2, 0 } end
if not_after > 0 and now > not_after then return { -1, now, 3, 0 } end
local first = fair and first_waiter(redis.call)
if held or (first and first ~= owner) then
  if ARGV[9] == '1' then stand_in_line() end
  if not held then -- it may have become the first just now, or be dead: ask again when it is given up
    wake(first)
    blocked[4] = math.max(tonumber(redis.call('ZSCORE', ends, first) or 0) - now / 1000, 1) * 1000
  end
  blocked[6] = first and first ~= owner and 1 or 0
  return blocked
end
local fence = math.max(last + 1, now)
redis.call('SET', KEYS[2], string.format('%.0f', fence + others))
redis.call('HSET', KEYS[1], owner, 1)
-- Never without an expiry: Redisson waits for such a lock without a limit.
local ended = redis.pcall('PEXPIRE', KEYS[1], ttl)
if type(ended) == 'table' then
  redis.call('DEL', KEYS[1])
  return ended
end
if first then leave_line() end
return { 1, now, fence, ttl * 1000, 0 }
