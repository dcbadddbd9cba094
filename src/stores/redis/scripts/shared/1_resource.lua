-- What all scripts share, put in the place of their line "@shared" (these files in the order of their
-- numbers): one resource loaded, changed in memory by the rules of stores/memory/ledger, and written in
-- one go.
--
-- What must hold:
--  1. Every check comes before the first write. A script is not rolled back: if a write fails, what
--     is stored is as before or as after, since the state only sums up what the keys beside it have,
--     and is put right when it differs from them.
--  2. Publishing comes last, and its failure fails nothing.
--  3. Numbers become text by struct.pack or as arguments of redis.call, never by Lua's own
--     conversion, which rounds microseconds to 14 digits.
--  4. Loops are bounded by limit.*.
--
-- Times are microseconds of the server's clock. docs/formats/redis.md has the layout.

local sharded = false
local limit = {
  promote = 64, -- grants, and ended claims taken out, in one step
  line = 1024, -- waiters looked at in one step
  tell = 256, -- holders told that somebody waits
  claims = 1000000, -- holders, and waiters, of one resource
}
local waiter_lease = 30000000
local hand_over_after = 1000
local tombstone_extra = 60000000
local stagger, stagger_limit, stagger_places = 20000, 1000000, 50
local state_life = 86400000 -- milliseconds, beyond the end of whatever is in the state

local EXPIRED, WITHDRAWN, QUEUED, GRANTED, RENEWED, RELEASED, FORCED = 4, 5, 0, 1, 2, 3, 6
local IN_USE_AS_LATCH, LEFT_BEFORE, TOO_LATE, OTHER_KIND, OTHER_MAX, BAD_PERMITS, TOO_MANY, FOREIGN,
  NEWER = 1, 2, 3, 4, 5, 6, 7, 8, 9
local EXCLUSIVE, SHARED, PERMIT = 0, 1, 2

local call, pack, unpack_bytes, sub = redis.call, struct.pack, struct.unpack, string.sub

local key, base, tail, existed -- of the resource in hand
local S -- its state
local H -- its exclusive holder, or nil
local held_before, waiting_before
local dropped -- what has ended is out
local moved -- the id of a hold that change.lua moves between the state and the hash
local holders, holder_writes -- by id: of shared and permit holders
local waiters, line, line_read, line_done, joined -- by id; in order
local hush -- by process: passed over until heard again?
local reach -- by process: has it a subscription?
local dirty, put_waiters, cut_waiters, beats, put_hush, cut_hush, tombstone
local letters, letters_order, events
local speaker, speaker_process

local function claim_of(raw)
  local id, process, not_after, ttl, delay, offer, block, permits, max, mode, fair, queued, renewed,
    payload = unpack_bytes('>c16c16ddddI4I4I4BBBBI2c0', raw)
  return {
    raw = raw, id = id, process = process, not_after = not_after, ttl = ttl, delay = delay,
    offer = offer, block = block, permits = permits, max = max, mode = mode, fair = fair == 1,
    queued = queued == 1, renewed = renewed == 1, payload = payload,
  }
end

local function holder_of(bytes)
  local fence, fin, since, mode, offer, told, revoked = unpack_bytes('>dddBBBB', bytes)
  return {
    fence = fence, fin = fin, since = since, mode = mode, offer = offer == 1, told = told == 1,
    revoked = revoked == 1, claim = claim_of(sub(bytes, 29)),
  }
end

local function bytes_of(h)
  return pack('>dddBBBB', h.fence, h.fin, h.since, h.mode, h.offer and 1 or 0, h.told and 1 or 0,
    h.revoked and 1 or 0) .. h.claim.raw
end

local function side(what)
  return base .. what .. ':' .. tail
end

-- Takes the resource in hand. Answers why it cannot, or nil.
local function load(which, bytes, name)
  key = which
  local brace = string.find(which, '}:s:', 1, true)
  base = sub(which, 1, brace + 1)
  tail = sub(which, brace + 4)
  existed = bytes and true or false
  S = {
    last = 0, shut = 0, tomb = 0, latch = 0, side = 0, line_side = 0, held = 0, permits = 0, untold = 0, ends = 0,
    waiting = 0, dead = 0, seq = 0, silent = 0, max = 0, told = '', name = name,
  }
  H = nil
  holders, holder_writes, waiters, line, hush, reach = {}, {}, {}, {}, {}, {}
  line_read, line_done, joined = 0, false, nil
  dirty, put_waiters, cut_waiters, beats, put_hush, cut_hush = false, {}, {}, {}, {}, {}
  tombstone, moved = nil, nil
  letters, letters_order, events = {}, {}, {}
  speaker, speaker_process = nil, nil
  if bytes then
    local shape = sub(bytes, 1, 4)
    local at
    if shape == 'hf1f' then
      S.last, S.shut, S.tomb, S.latch, S.side, S.line_side, S.held, S.permits, S.untold, S.ends,
        S.waiting, S.dead, S.seq, S.silent, S.max, S.told, S.name, at =
        unpack_bytes('>ddddddI4dI4dI4ddI4I4I2c0I2c0', bytes, 5)
    elseif shape == 'hf1x' or shape == 'hf1i' then
      S.last, S.name, at = unpack_bytes('>dI2c0', bytes, 5)
    elseif sub(shape, 1, 2) == 'hf' then
      return NEWER
    else
      return FOREIGN
    end
    if at <= #bytes then H = holder_of(sub(bytes, at)) end
  end
  held_before, waiting_before, dropped = S.held, S.waiting, false
end

-- --- telling -------------------------------------------------------------------------------------

local function post(process, letter)
  local to = letters[process]
  if not to then
    to = {}
    letters[process] = to
    letters_order[#letters_order + 1] = process
  end
  to[#to + 1] = letter
end

local function note(what, claim, holder)
  if not observed then return end
  events[#events + 1] = pack('>BBc16dI2c0', what, holder and holder.mode or claim.mode, claim.id,
    holder and holder.fence or 0, #claim.payload, claim.payload)
end

local function tell_gone(h, why)
  post(h.claim.process, pack('>c1c16B', 'n', h.claim.id, why))
end

local function reachable(process)
  local known = reach[process]
  if known == nil then
    known = call('PUBSUB', sharded and 'SHARDNUMSUB' or 'NUMSUB', base .. 'c:' .. process)[2] > 0
    reach[process] = known
  end
  return known
end
