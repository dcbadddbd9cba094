-- The rules of Redis' native dialect: a library of functions (Redis 7) or, the same text wrapped, one script (6.2).
-- Read the files in the order of their numbers: the state of a name, its queue, its holders, the rules, the verbs, and
-- what clients call. docs/formats/redis.md has the layout of keys and bytes.
--
-- A verb loads a name into the variables of "the name in hand", changes them by the rules of stores/ledger, and
-- writes them in one go (commit). What must hold:
--  1. Every check comes before the first write, but claims that have ended or left are removed from their hash
--     at once. Nothing is rolled back: if a write fails, what is stored is as before or as after the verb, and
--     the verb can be repeated.
--  2. Publishing comes last, and its failure fails nothing.
--  3. Numbers become text by struct.pack or as arguments of redis.call, never by Lua's own conversion, which rounds
--     microseconds to 14 digits.
--  4. Loops are bounded by named limits.
--  5. A verb that is not possible raises a refusal or an error reply: answer_of catches them.
-- Times are microseconds of the server's clock; `x_till` is when x ends.

local WAITER_LEASE = 30000000 -- a waiter that is not heard from for this long is dead
local TOMBSTONE_EXTRA = 60000000 -- how much longer than its ttl the id of a claim that left is refused
local STATE_LIFE = 86400000 -- milliseconds, beyond the end of whatever is in the state
local LIFE_SLACK = 60000000 -- keys live this much longer than they must, so that their expiry is rarely set
local WANTED_AFTER = 5000 -- a younger hold is not notified that somebody waits
local STAGGER, STAGGER_LIMIT = 20000, 1000000 -- waiters look again one after the other
local PROPOSAL_SLACK = 1000000 -- how far a proposed fence may be from this clock
local GRANTS_LIMIT = 64 -- grants in one step
local LOOK_LIMIT = 200000 -- waiters looked at in one step
local NOTIFY_LIMIT = 256 -- holders notified that somebody waits
local CLAIMS_LIMIT = 1000000 -- holders of one name, and waiters of one
local SHOWN_LIMIT = 10000 -- holders that inspect returns, and waiters
local HOLDERS_AT_ONCE, LOOK_PAUSE = 100, 10 -- with more, all are looked at only every so many microseconds per holder
local PAGE = 1000 -- arguments of one command

local EXCLUSIVE, SHARED, PERMIT = 0, 1, 2
local QUEUED, GRANTED, RENEWED, RELEASED, EXPIRED, WITHDRAWN, FORCED = 0, 1, 2, 3, 4, 5, 6 -- events
-- Why a verb is refused: wire.cpp has the words.
local REFUSED = {
  in_use_as_latch = 1, left_before = 2, too_late = 3, other_kind = 4, other_max = 5, bad_permits = 6, too_many = 7,
  foreign = 8, other_version = 9, not_held = 10, no_other_mode = 11, other_readers = 12, reader_died = 13,
  in_use_as_lock = 14, latch_is_set = 15, latch_is_unset = 16, -- 17, 19: scripts/
  nothing_to_take = 18,
}

-- Bound by the first call: they do not exist while a library is loaded.
local call, try, pack, unpack_bytes, sub, byte, max, min
local now -- when this call began; nil: the clock was not read yet
local sharded -- the kind of channels by which processes are notified
local wrapped = not redis.register_function -- this is a script, which cannot have flags

-- Every call begins here. Returns what its keys contain, read at once. cluster: '1' in a cluster.
local function begin(keys, cluster)
  if not call then
    call, try, pack, unpack_bytes, sub = redis.call, redis.pcall, struct.pack, struct.unpack, string.sub
    byte, max, min = string.byte, math.max, math.min
  end
  now, sharded = nil, false
  if cluster == '1' then
    sharded = redis.REDIS_VERSION_NUM ~= nil -- Redis before version 7 has no such channels
    -- While a slot is being moved, a command with two keys, one of which never exists, is refused by both nodes: some
    -- of the keys that follow may be here and some there.
    call('EXISTS', keys[1], keys[1] .. '/')
  end
  return call('MGET', unpack(keys))
end

local function read_clock()
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

-- Ends a verb that is not possible, with its answer.
local function refuse(why, number) error({ -1, now, why, number or 0 }, 0) end

-- Ends a verb with an error reply; in a table, because Redis 7 would turn the reply itself into a text in scripts.
local function fail(reply) error({ reply = reply }, 0) end

-- --- claims and holds ----------------------------------------------------------------------------

-- A claim as it is sent, stored and shown: `raw`. The parts that are needed often:
local function id_of(raw) return sub(raw, 1, 16) end
local function process_of(raw) return sub(raw, 17, 32) end
local function payload_of(raw) return sub(raw, 83) end
local function ttl_of(raw) return (unpack_bytes('>d', raw, 41)) end
local function block_of(raw) return max((unpack_bytes('>I4', raw, 65)), 1) end -- fences reserved
local function permits_of(raw) return unpack_bytes('>I4I4', raw, 69) end -- and how many there are
local function mode_of(raw) return byte(raw, 77) end
local function is_fair(raw) return byte(raw, 78) == 1 end
local function is_queued(raw) return byte(raw, 79) == 1 end
local function is_renewed(raw) return byte(raw, 80) == 1 end

-- told: it was notified that somebody waits.
local function hold_of(bytes, at)
  local fence, fin, since, flags, id = unpack_bytes('>dddBc16', bytes, at)
  return {
    fence = fence, fin = fin, since = since, mode = flags % 4, offer = flags % 8 > 3, told = flags % 16 > 7,
    revoked = flags > 15, id = id, raw = sub(bytes, at + 25),
  }
end

local function flags_of(h)
  return h.mode + (h.offer and 4 or 0) + (h.told and 8 or 0) + (h.revoked and 16 or 0)
end

local function bytes_of(h) return pack('>dddBc0', h.fence, h.fin, h.since, flags_of(h), h.raw) end

-- --- the state of a name -------------------------------------------------------------------------

-- The name in hand. These are variables because with a table a pair of calls takes a tenth more of the server's time.
local state_key, stored, name -- stored: the bytes of the state as they are stored now, or false
local last, kept_till -- last fence; when all that is kept of the name is over
local delay_till, tombs_till, latch_till -- until when: nobody is granted; some ids are refused; it is a latch
local holder -- the exclusive holder, or nil
local waiting, first, seq, dead, mark, cursor -- 2_queue
local held, permits, untold, next_end, most -- 3_holders
-- What the verb does with the name:
local observed -- somebody watches the events of its partition
local caller -- the claim that asks: it is answered, not notified
local dirty -- the state must be written
local base, tail -- parts of the names of the keys beside the state
local waiter -- the waiter that asks: its record must be written
local cut -- by id: numbers of granted claims, to be taken out of the queue
local written -- by id: holders to be written to the hash
local tombstone, tombstone_id -- to be stored, until when
local messages, events, reach -- to be sent, by process; to be published; by process: is it subscribed?

-- What a state contains beside its head: see save().
local HAS_QUEUE, HAS_REST, HAS_NAME, HAS_HOLDER = 1, 2, 4, 8

-- Loads a name into the variables. bytes: of its state, or false. watched: somebody observes its partition.
local function load(key, bytes, watched, long_name)
  if not now then read_clock() end
  state_key, stored, observed, name, dirty = key, bytes, watched, long_name or '', false
  last, kept_till, waiting, held, most, delay_till, tombs_till, latch_till = 0, 0, 0, 0, 0, 0, 0, 0
  first, seq, dead, mark, cursor, permits, untold, next_end = 1, 0, 0, 0, 0, 0, 0, 0
  -- luacheck: push ignore 532 (the others become nil)
  holder, caller, base, waiter, cut, written, tombstone, messages, events, reach = nil
  -- luacheck: pop
  if not bytes then return end
  if sub(bytes, 1, 4) ~= 'hf4s' then
    refuse(sub(bytes, 1, 2) == 'hf' and REFUSED.other_version or REFUSED.foreign)
  end
  local parts, at
  parts, last, kept_till, at = unpack_bytes('>Bdd', bytes, 5)
  if parts % 2 >= HAS_QUEUE then
    waiting, first, seq, dead, mark, cursor, at = unpack_bytes('>I4ddddd', bytes, at)
  end
  if parts % 4 >= HAS_REST then
    delay_till, tombs_till, latch_till, held, permits, untold, next_end, most, at =
      unpack_bytes('>dddI4dI4dI4', bytes, at)
  end
  if parts % 8 >= HAS_NAME then name, at = unpack_bytes('>I2c0', bytes, at) end
  if parts >= HAS_HOLDER then holder = hold_of(bytes, at) end
end

-- Writes the state, with a new life or, which costs less, the old one.
local function save(new_life)
  local parts, more = 0, ''
  if waiting > 0 or cut and not holder then -- the places of cut waiters stay known until they are in the hash
    parts = HAS_QUEUE
    more = pack('>I4ddddd', waiting, first, seq, dead, mark, cursor)
  end
  if held > 0 or delay_till > now or tombs_till > now or latch_till > now or most > 0 and waiting > 0 then
    parts = parts + HAS_REST
    more = more .. pack('>dddI4dI4dI4', delay_till, tombs_till, latch_till, held, permits, max(untold, 0), next_end,
      most)
  end
  if name ~= '' then
    parts = parts + HAS_NAME
    more = more .. pack('>I2c0', #name, name)
  end
  local h, bytes, done = holder
  if h then -- in one call: most states have a holder and nothing else
    bytes = pack('>c4Bddc0dddBc0', 'hf4s', parts + HAS_HOLDER, last, kept_till, more, h.fence, h.fin, h.since,
      flags_of(h), h.raw)
  else
    bytes = pack('>c4Bddc0', 'hf4s', parts, last, kept_till, more)
  end
  if not stored or new_life then
    local life = STATE_LIFE + math.ceil(max(kept_till - now, 0) / 1000)
    done = try('SET', state_key, bytes, 'PX', life, stored and 'XX' or 'NX')
    if not done then refuse(REFUSED.foreign) end -- a value of another type, which MGET does not show
  else
    done = try('SET', state_key, bytes, 'KEEPTTL')
  end
  if done.err then fail(done) end
  stored = bytes
end

-- The name of a channel of the partition.
local function channel(which)
  if not base then base, tail = string.match(state_key, '^(.-}:)s(:.*)$') end
  return base .. which
end

-- The key beside the state for `what` of the name.
local function side(what) return channel(what) .. tail end

-- Makes the key beside the state live until then.
local function keep(what, till) call('PEXPIREAT', side(what), string.format('%.0f', math.ceil(till / 1000))) end

-- Called before writing what gives back or keeps: a script has no flag that lets it run without memory, but once it has
-- written, the server lets it write on.
local function lift_limit()
  if wrapped and stored then keep('s', kept_till + STATE_LIFE * 1000) end
end

-- Lua passes only so many arguments at once. Returns the answer to the last part.
local function paged(verb, key, list)
  local answer
  for from = 1, #list, PAGE do answer = call(verb, key, unpack(list, from, min(#list, from + PAGE - 1))) end
  return answer
end

-- --- notifying -----------------------------------------------------------------------------------

-- Kept until everything is written.
local function post(process, message)
  messages = messages or {}
  local others = messages[process]
  messages[process] = others and others .. message or message
end

local function tell_gone(h, why) post(process_of(h.raw), pack('>c1c16B', 'n', h.id, why)) end

-- An event, for observers.
local function note(what, raw, h)
  if not observed then return end
  events = events or {}
  local payload = payload_of(raw)
  events[#events + 1] = pack('>BBc16dI2c0', what, h and h.mode or mode_of(raw), id_of(raw), h and h.fence or 0,
    #payload, payload)
end

-- Has the process a subscription?
local function reachable(process)
  reach = reach or {}
  local found = reach[process]
  if found == nil then
    found = call('PUBSUB', sharded and 'SHARDNUMSUB' or 'NUMSUB', channel('c:') .. process)[2] > 0
    reach[process] = found
  end
  return found
end

local function publish(which, message) try(sharded and 'SPUBLISH' or 'PUBLISH', channel(which), message) end

local function deliver()
  for process, all in pairs(messages or {}) do publish('c:' .. process, all) end
  if events then
    local encoded = sub(side(''), #base + 2)
    publish('e', pack('>I2c0I2c0', #encoded, encoded, #name, name) .. table.concat(events))
  end
end
