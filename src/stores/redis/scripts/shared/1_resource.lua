-- What all scripts share, put in the place of their line "@shared" (these files in the order of their
-- numbers), behind parts/settings: one resource loaded, changed in memory by the rules of
-- stores/memory/ledger, and written in one go.
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

--@is limit.promote 64 -- grants, and ended holds taken out, in one step
--@is limit.dead 1024 -- dead waiters taken out in one step
--@is limit.line 1024 -- waiters that could be granted and are looked at for a newcomer
--@is limit.tell 256 -- holders told that somebody waits
--@is limit.packed 4096 -- bytes of a line that is not in the three keys: docs/formats/redis.md
--@is limit.head 768 -- bytes of it in the state, what comes behind is in the rest
--@is limit.rest 16384 -- bytes of the key of the rest, about
--@is limit.waste 512 -- bytes of a state before its line
--@is limit.claims 1000000 -- holders, and waiters, of one resource
--@is stagger_step 20000
--@is stagger_limit 1000000
--@is stagger_places 50
--@is wish_slack 1000000
--@is wanted_after 5000 -- a hold that is younger is not told that somebody waits
--@is state_life 86400000 -- milliseconds, beyond the end of whatever is in the state

--@is QUEUED 0
--@is GRANTED 1
--@is RENEWED 2
--@is RELEASED 3
--@is EXPIRED 4
--@is WITHDRAWN 5
--@is FORCED 6

--@is IN_USE_AS_LATCH 1
--@is LEFT_BEFORE 2
--@is TOO_LATE 3
--@is OTHER_KIND 4
--@is OTHER_MAX 5
--@is BAD_PERMITS 6
--@is TOO_MANY 7
--@is FOREIGN 8
--@is NEWER 9

--@is EXCLUSIVE 0
--@is SHARED 1
--@is PERMIT 2

local call, pack, unpack_bytes, sub = redis.call, struct.pack, struct.unpack, string.sub

local S -- the state of the resource in hand
local H -- its exclusive holder, or nil
-- The rest of the resource in hand, and all that can be done with it: in one table, because a script
-- makes its functions anew in every call, and Lua looks up each variable that a function takes from
-- outside in a list of all such variables.
local R = {
  key = '', base = '', tail = '', existed = false,
  held_before = 0, waiting_before = 0,
  dropped = false, -- what has ended is out
  moved = nil, -- the id of a hold that change.lua moves between the state and the hash
  holders = nil, holder_writes = nil, -- by id: of shared and permit holders
  waiters = nil, line = nil, line_read = 0, line_done = false, joined = nil, -- by id; in order
  passed = 0, -- waiters that were read and cannot be granted now: they are not in `line`
  brief = false, spilled = false, -- there are no keys of the line: nobody waits, or the state has the line;
  -- they were made
  rested = false, -- some of the line were in the key of its rest
  mark = nil, -- who has not been heard since this time is passed over: see silence_mark()
  reach = nil, -- by process: has it a subscription?
  dirty = false, put_waiters = nil, cut_waiters = nil, beats = nil,
  tombstone = nil,
  letters = nil, letters_order = nil, events = nil,
  speaker = nil,
  wish = nil, -- of a quorum, for the next fence
}

function R.claim_of(raw)
  local id, process, not_after, ttl, delay, offer, block, permits, max, mode, fair, queued, renewed,
    payload = unpack_bytes('>c16c16ddddI4I4I4BBBBI2c0', raw)
  return {
    raw = raw, id = id, process = process, not_after = not_after, ttl = ttl, delay = delay,
    offer = offer, block = block, permits = permits, max = max, mode = mode, fair = fair == 1,
    queued = queued == 1, renewed = renewed == 1, payload = payload,
  }
end

function R.holder_of(bytes)
  local fence, fin, since, mode, offer, told, revoked = unpack_bytes('>dddBBBB', bytes)
  return {
    fence = fence, fin = fin, since = since, mode = mode, offer = offer == 1, told = told == 1,
    revoked = revoked == 1, claim = R.claim_of(sub(bytes, 29)),
  }
end

function R.bytes_of(h)
  return pack('>dddBBBB', h.fence, h.fin, h.since, h.mode, h.offer and 1 or 0, h.told and 1 or 0,
    h.revoked and 1 or 0) .. h.claim.raw
end

function R.side(what)
  return R.base .. what .. ':' .. R.tail
end

-- Takes the resource in hand. Answers why it cannot, or nil.
function R.load(which, bytes, name)
  R.key = which
  local brace = string.find(which, '}:s:', 1, true)
  R.base = sub(which, 1, brace + 1)
  R.tail = sub(which, brace + 4)
  R.existed = bytes and true or false
  S = {
    last = 0, kept = 0, shut = 0, tomb = 0, latch = 0, side = 0, line_side = 0, held = 0, permits = 0,
    untold = 0, ends = 0, waiting = 0, dead = 0, seq = 0, silent = 0, max = 0, name = name,
  }
  H = nil
  R.holders, R.holder_writes, R.waiters, R.line, R.reach = {}, {}, {}, {}, {}
  R.line_read, R.passed, R.mark = 0, 0, nil
  R.joined, R.brief, R.spilled, R.rested = nil, true, false, false
  R.dirty, R.put_waiters, R.cut_waiters, R.beats = false, {}, {}, {}
  R.tombstone, R.moved = nil, nil
  R.letters, R.letters_order, R.events = {}, {}, {}
  R.speaker = nil
  if bytes then
    local kind = sub(bytes, 1, 4)
    local at, _ = #bytes + 1
    local holder = ''
    if kind == 'hf2f' then
      S.last, S.kept, S.shut, S.tomb, S.latch, S.side, S.line_side, S.held, S.permits, S.untold, S.ends,
        S.waiting, S.dead, S.seq, S.silent, S.max, S.name, at =
        unpack_bytes('>dddddddI4dI4dI4ddI4I4I2c0', bytes, 5)
      holder = sub(bytes, at)
    elseif kind == 'hf2l' then
      local fin, rest_at, rest_from
      S.last, at, _, fin = unpack_bytes('>dI4dd', bytes, 5)
      S.kept, S.tomb, S.dead, rest_at, rest_from, S.name = unpack_bytes('>dddI4I4I2c0', bytes, 45)
      if fin > 0 then
        local record
        record, at = unpack_bytes('>I2c0', bytes, at)
        holder = sub(bytes, 17, 44) .. sub(record, 17)
      end
      -- Where the records of the rest are lost, so are those who wait there.
      if rest_at > 0 then
        local rest_end = unpack_bytes('>I4', bytes, #bytes - 3)
        local there = call('GETRANGE', R.side('r'), rest_from, rest_end - 1)
        R.rested = true
        if #there ~= rest_end - rest_from then there, R.dirty = '', true end
        bytes = sub(bytes, 1, rest_at - 1) .. there
      end
    elseif kind == 'hf2w' then -- as older versions wrote it
      S.last, S.kept, S.tomb, S.dead, _, S.name, holder, at = unpack_bytes('>ddddBI2c0I2c0', bytes, 5)
    elseif kind == 'hf2x' or kind == 'hf2i' then
      S.last, S.kept, S.name, at = unpack_bytes('>ddI2c0', bytes, 5)
      if kind == 'hf2x' then holder = sub(bytes, at) end
    elseif sub(kind, 1, 2) == 'hf' then
      return NEWER
    else
      return FOREIGN
    end
    if holder ~= '' then H = R.holder_of(holder) end
    if kind == 'hf2l' or kind == 'hf2w' then R.read_brief(bytes, at) end
    R.brief = kind ~= 'hf2f' or S.waiting == 0
  end
  R.line_done = R.brief
  R.held_before, R.waiting_before, R.dropped = S.held, S.waiting, false
end

-- --- telling -------------------------------------------------------------------------------------

function R.post(process, letter)
  local to = R.letters[process]
  if not to then
    to = {}
    R.letters[process] = to
    R.letters_order[#R.letters_order + 1] = process
  end
  to[#to + 1] = letter
end

function R.note(what, claim, holder)
  if not observed then return end
  R.events[#R.events + 1] = pack('>BBc16dI2c0', what, holder and holder.mode or claim.mode, claim.id,
    holder and holder.fence or 0, #claim.payload, claim.payload)
end

function R.tell_gone(h, why)
  R.post(h.claim.process, pack('>c1c16B', 'n', h.claim.id, why))
end

function R.reachable(process)
  local known = R.reach[process]
  if known == nil then
    known = call('PUBSUB', sharded and 'SHARDNUMSUB' or 'NUMSUB', R.base .. 'c:' .. process)[2] > 0
    R.reach[process] = known
  end
  return known
end
