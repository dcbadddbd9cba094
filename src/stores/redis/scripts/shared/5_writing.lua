-- Writes what a script changed, the state first, and tells who is concerned.

local function shape()
  local plain = S.held == 0 and S.waiting == 0 and S.shut <= now and S.tomb <= now and S.latch <= now
  if plain then
    local head = pack('>c4dI2c0', H and 'hf1x' or 'hf1i', S.last, #S.name, S.name)
    return H and head .. bytes_of(H) or head
  end
  local head = pack('>c4ddddddI4dI4dI4ddI4I4I2c0I2c0', 'hf1f', S.last, S.shut, S.tomb, S.latch,
    S.side, S.line_side, S.held, S.permits, math.max(S.untold, 0), S.ends, S.waiting, S.dead, S.seq,
    S.silent, S.max, #S.told, S.told, #S.name, S.name)
  return H and head .. bytes_of(H) or head
end

-- Out of memory, nothing may grow; but what shrinks or stays must go through: once a script has
-- written, the server lets it write on, and a new end of life for a key takes no memory.
local function save(bytes, life, grows)
  local done
  if existed then
    done = redis.pcall('SET', key, bytes, 'PX', life)
  else
    done = redis.pcall('SET', key, bytes, 'PX', life, 'NX')
  end
  if type(done) == 'table' and done.err then
    if grows or not string.find(done.err, 'OOM', 1, true) then return done end
    call('PEXPIRE', key, life)
    call('SET', key, bytes, 'PX', life)
  elseif not done then
    return FOREIGN -- a value of another type, which MGET does not show
  end
end

-- Lua hands over only so many arguments at once.
local function paged(how, verb, where, list)
  local page = 1000
  for from = 1, #list, page do
    how(verb, where, unpack(list, from, math.min(#list, from + page - 1)))
  end
end
local function call_paged(verb, where, list) paged(call, verb, where, list) end

-- Of what the state no longer counts: if it stays, it is recognised and taken out later.
local function drop_paged(verb, where, list) paged(redis.pcall, verb, where, list) end

-- Before the state: it takes no memory, and if it fails nothing was changed. If the state then
-- fails, the holders are counted again.
local function cut_holders()
  local gone = {}
  for id, h in pairs(holder_writes) do
    if not h and id ~= moved then gone[#gone + 1] = id end
  end
  if #gone > 0 then call_paged('HDEL', side('h'), gone) end
  return gone
end

-- A hold that moves between the state and the hash is in both meanwhile, never in neither.
local function add_moved()
  local h = moved and holder_writes[moved]
  if not h then return end
  call('ZADD', side('e'), h.fin, moved)
  call('HSET', side('h'), moved, bytes_of(h))
end

local function cut_moved()
  if not moved or holder_writes[moved] then return end
  redis.pcall('HDEL', side('h'), moved)
  redis.pcall('ZREM', side('e'), moved)
end

local function write_holders(gone, till)
  local puts, ends = {}, {}
  for id, h in pairs(holder_writes) do
    if h then
      puts[#puts + 1] = id
      puts[#puts + 1] = bytes_of(h)
      ends[#ends + 1] = h.fin
      ends[#ends + 1] = id
    end
  end
  if #gone > 0 then drop_paged('ZREM', side('e'), gone) end
  if #puts == 0 then return end
  -- An end without a holder is dropped when it comes; a holder without an end would never end.
  call_paged('ZADD', side('e'), ends)
  call_paged('HSET', side('h'), puts)
  if till then
    call('PEXPIREAT', side('h'), till)
    call('PEXPIREAT', side('e'), till)
  end
end

local function write_line(till)
  if #cut_waiters > 0 then
    drop_paged('ZREM', side('w'), cut_waiters)
    drop_paged('ZREM', side('d'), cut_waiters)
    drop_paged('HDEL', side('q'), cut_waiters)
  end
  if S.waiting == 0 then
    if waiting_before > 0 then redis.pcall('DEL', side('q'), side('w'), side('d')) end
    return
  end
  if #cut_hush > 0 then redis.pcall('HDEL', side('q'), unpack(cut_hush)) end
  for field, value in pairs(put_hush) do call('HSET', side('q'), field, value) end
  for id, w in pairs(put_waiters) do
    call('ZADD', side('w'), w.seq, id)
    call('ZADD', side('d'), now + waiter_lease, id)
    call('HSET', side('q'), id, pack('>d', w.since) .. w.claim.raw)
  end
  for _, id in ipairs(beats) do
    if not waiters[id].gone then
      local done = redis.pcall('ZADD', side('d'), 'XX', now + waiter_lease, id)
      if type(done) == 'table' and done.err then -- out of memory: as in save()
        call('PEXPIREAT', side('d'), math.floor(S.line_side / 1000))
        call('ZADD', side('d'), 'XX', now + waiter_lease, id)
      end
    end
  end
  if till then
    call('PEXPIREAT', side('w'), till)
    call('PEXPIREAT', side('d'), till)
    call('PEXPIREAT', side('q'), till)
  end
end

-- Until when keys beside the state must live, if that is to be told to the server now: they outlive
-- what is in them, but not for ever.
local function life_beside(known, fresh, longest)
  local need = longest + 60000000
  if not fresh and known >= now + need then return known end
  return math.max(known, now + 2 * need), math.floor(math.max(known, now + 2 * need) / 1000)
end

local function holders_end()
  local longest = 0
  for _, h in pairs(holder_writes) do
    if h then longest = math.max(longest, h.claim.ttl) end
  end
  if longest == 0 then return end
  local till
  S.side, till = life_beside(S.side, held_before == 0, longest)
  return till
end

local function line_end()
  if not next(put_waiters) and #beats == 0 then return end
  local till
  S.line_side, till = life_beside(S.line_side, waiting_before == 0, waiter_lease)
  if till then dirty = true end
  return till
end

local function deliver()
  local verb = sharded and 'SPUBLISH' or 'PUBLISH'
  for _, process in ipairs(letters_order) do
    redis.pcall(verb, base .. 'c:' .. process, table.concat(letters[process]))
  end
  if #events > 0 then
    redis.pcall(verb, base .. 'e',
      pack('>I2c0I2c0', #tail, tail, #S.name, S.name) .. table.concat(events))
  end
end

-- Writes what was changed, then tells. grows: refused where memory is out, and nothing is changed.
-- Answers an error reply or a number of one, or nil.
local function commit(grows)
  if S.waiting == 0 then S.silent = 0 end
  local holders_till, line_till = holders_end(), line_end()
  local gone = cut_holders()
  add_moved()
  if dirty or tombstone then
    local last = math.max(now, S.shut, S.tomb, S.latch, S.side, S.line_side,
      H and H.fin or 0)
    local problem = save(shape(), state_life + math.ceil((last - now) / 1000), grows)
    if problem then return problem end
  end
  cut_moved()
  write_holders(gone, holders_till)
  if dirty or #beats > 0 then write_line(line_till) end
  if tombstone then
    local key_of_tombstones = side('t')
    call('ZREMRANGEBYSCORE', key_of_tombstones, '-inf', now)
    call('ZADD', key_of_tombstones, tombstone[2], tombstone[1])
    call('PEXPIREAT', key_of_tombstones, math.ceil(S.tomb / 1000))
  end
  deliver()
end

-- The answer to a verb that cannot be: a reply of an error as it is, or {-1, now, why, number}.
local function refusal(why, number)
  if type(why) == 'table' then return why end
  return { -1, now, why, number or 0 }
end
