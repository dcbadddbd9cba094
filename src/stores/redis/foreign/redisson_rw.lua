-- dialect=redisson: an RReadWriteLock, a hash of `mode`, readers (OWNER) and the writer (OWNER:write), each counting as
-- one. Every reader has a key beside it that expires with its lease; its value, which Redisson never reads, is the
-- fence. ARGV: the verb, the owner, then what the verb takes. KEYS: the name, then those of the verb, and last a
-- reader's key. Answers are those of the library's verbs.
local verb, owner, name = ARGV[1], ARGV[2], KEYS[1]
local share = KEYS[verb == 'attempt' and 4 or 3]
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local mode = redis.pcall('HGET', name, 'mode')
local foreign = type(mode) == 'table'
if foreign and not string.find(mode.err, 'WRONGTYPE', 1, true) then return mode end
local mine = not foreign and redis.call('HEXISTS', name, owner) == 1
-- A safe revocation renames the owner, and a reader's key, so that neither side prolongs it any more.
local function renamed(key)
  return key and string.gsub(key, ':rwlock_timeout:1$', ':revoked%0')
end
local revoked = not foreign and not mine and redis.call('HEXISTS', name, owner .. ':revoked') == 1
if revoked then owner, share, mine = owner .. ':revoked', renamed(share), true end

-- How many others hold, and how long the readers among them may, in ms.
local function others()
  local base = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
  local fields, count, longest = redis.call('HGETALL', name), 0, 0
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' and fields[i] ~= owner then
      count = count + 1
      for hold = 1, tonumber(fields[i + 1]) or 0 do
        longest = math.max(longest, redis.call('PTTL', base .. ':' .. fields[i] .. ':rwlock_timeout:' .. hold))
      end
    end
  end
  return count, longest
end

-- Like Redisson's unlock: expired readers keep nobody out. Published first: if that is not
-- allowed, the lock stays held.
local function give_back(channel)
  local count, longest = others()
  if count == 0 or (share and mode == 'read' and longest <= 0) then
    if channel then redis.call('PUBLISH', channel, share and '0' or '1') end
    redis.call('DEL', name)
  else
    if not share then
      if channel then redis.call('PUBLISH', channel, '1') end
      redis.call('HSET', name, 'mode', 'read')
    end
    redis.call('HDEL', name, owner)
    if longest > 0 then redis.call('PEXPIRE', name, longest) end
  end
  if share then redis.call('DEL', share) end
end

-- KEYS: and the tombstone. ARGV: tombstone's ms or 0, 'revoke': what it holds stays, and is not prolonged; channel.
if verb == 'leave' then
  if mine and ARGV[4] == 'revoke' then
    if not revoked then
      redis.call('HSET', name, owner .. ':revoked', 1)
      redis.call('HDEL', name, owner)
      if share and redis.call('EXISTS', share) == 1 then redis.call('RENAME', share, renamed(share)) end
    end
    return { 1, now }
  end
  if mine then give_back(ARGV[5]) end
  -- After a deletion this is allowed even without memory.
  if tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[2], '1', 'PX', tonumber(ARGV[3])) end
  return { mine and 1 or 2, now }
end

local function written()
  return tonumber(redis.call('GET', share))
end

-- One claim. KEYS: and the fence. ARGV: ttl in ms, renewed ('0': only looks), how many fences.
if verb == 'renew' then
  local fence = mine and share and written()
  if mine and share and not fence then -- its time was over: others may have got the lock
    give_back()
    mine = false
  end
  if not mine then return { now, 3, 0, 0, 0, 0 } end
  if not share then
    fence = math.max((tonumber(redis.call('GET', KEYS[2]) or 0) or 0) - tonumber(ARGV[5]) + 1, 0)
  end
  local rest = redis.call('PTTL', name)
  if ARGV[4] == '0' or revoked then
    if share then rest = math.min(rest, redis.call('PTTL', share)) end
    return { now, 1, fence, rest * 1000, 0, 0 }
  end
  local ttl = tonumber(ARGV[3])
  redis.call('PEXPIRE', name, share and math.max(rest, ttl) or ttl)
  if share then redis.call('PEXPIRE', share, ttl) end
  return { now, 0, fence, ttl * 1000, 0, 0 }
end

-- An attempt. A repetition by the same claim does not count up. KEYS: and the fence, the tombstone. ARGV: ttl in ms,
-- not after (0: none), how many fences.
if foreign then return { -1, now, 8, 0 } end
-- Redisson only looks at `mode` and ignores such a lock. We do not.
if not mode and redis.call('EXISTS', name) == 1 then return { -1, now, 19, 0 } end
local ttl, not_after, block = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
if mine and (not share or written()) then
  local fence = share and written() or math.max(last - block + 1, 0)
  local rest = redis.call('PTTL', name)
  if revoked then return { 1, now, fence, redis.call('PTTL', share or name) * 1000, 0 } end
  redis.call('PEXPIRE', name, share and math.max(rest, ttl) or ttl)
  if share then redis.call('PEXPIRE', share, ttl) end
  return { 1, now, fence, ttl * 1000, 0 }
end
if mode and not (mode == 'read' and share) then
  local rest = redis.call('PTTL', name) -- 0: less than a millisecond; below: it has no end
  return { 0, now, 0, rest < 0 and 1000000 or math.max(rest, 1) * 1000, '' }
end
if redis.call('EXISTS', KEYS[3]) == 1 then return { -1, now, 2, 0 } end
if not_after > 0 and now > not_after then return { -1, now, 3, 0 } end
local fence = math.max(last + 1, now)
local ends = share and math.max(redis.call('PTTL', name), ttl) or ttl
redis.call('SET', KEYS[2], string.format('%.0f', fence + block - 1))
if share then redis.call('SET', share, string.format('%.0f', fence), 'PX', ttl) end
redis.call('HSET', name, 'mode', share and 'read' or 'write', owner, 1)
-- Never without an expiry: Redisson waits for such a lock without a limit.
local ended = redis.pcall('PEXPIRE', name, ends)
if type(ended) == 'table' then
  give_back()
  return ended
end
return { 1, now, fence, ttl * 1000, 0 }
