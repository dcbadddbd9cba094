-- A mutex that somebody holds or waits for, taken apart without the helpers that the general way makes
-- anew in every call: making them takes longer than everything that is done here. `ordinary`: there is
-- nothing in it that only the general way knows how to handle.
local call, pack, unpack_bytes, sub = redis.call, struct.pack, struct.unpack, string.sub
local last, kept, shut, tomb, latch, side, line_side, held, permits, untold, ends, waiting, dead, seq, silent,
  max, name, at, _
local ordinary = false
-- Somebody holds: its claim, where it is to be written anew; where it begins in the state.
local holds, whose, claim_at = false
local fence, fin, since, mode, offer, wanted, revoked, holder_id, holder_process
-- The state has a line, and can be changed in place: where the line begins (`waiting` then only says whether
-- anybody is in it); where the ids of the rest are, whose records are in a key of their own (0: there is none), and
-- where in that key the first of these is.
local packed, line_at, rest_at, rest_from = false
if state and not observed then
  local kind = sub(state, 1, 4)
  if kind == 'hf2l' then
    last, at, fence, fin, since, mode, offer, wanted, revoked, kept, tomb, dead, rest_at, rest_from, name =
      unpack_bytes('>dI4dddBBBBdddI4I4I2c0', state, 5)
    packed, holds, line_at = true, fin > 0, at
    if holds then claim_at, line_at = at + 18, at + 2 + unpack_bytes('>I2', state, at) end
    waiting = line_at <= #state and 1 or 0
    ordinary = waiting == 0 or dead > now
  elseif kind == 'hf2x' then
    last, kept, name, at = unpack_bytes('>ddI2c0', state, 5)
    holds = true
    tomb, waiting, dead = 0, 0, 0
    ordinary = true
  elseif kind == 'hf2f' then
    last, kept, shut, tomb, latch, side, line_side, held, permits, untold, ends, waiting, dead, seq, silent,
      max, name, at = unpack_bytes('>dddddddI4dI4dI4ddI4I4I2c0', state, 5)
    holds = at <= #state
    ordinary = (waiting == 0 or dead > now) and held == 0 and silent == 0 and max == 0 and shut <= now
      and latch <= now
  end
end
local brief = ordinary and (not seq or waiting == 0)
if ordinary and holds then
  if packed then
    holder_id, holder_process = unpack_bytes('c16c16', state, claim_at)
  else
    claim_at = at + 28
    fence, fin, since, mode, offer, wanted, revoked, holder_id, holder_process =
      unpack_bytes('>dddBBBBc16c16', state, at)
  end
  ordinary = mode == EXCLUSIVE and revoked == 0 and fin > now
end
local brace = string.find(KEYS[1], '}:s:', 1, true)
local base, tail = sub(KEYS[1], 1, brace + 1), sub(KEYS[1], brace + 3)
local line, deaths, records
if ordinary and not brief then
  line, deaths, records = base .. 'w' .. tail, base .. 'd' .. tail, base .. 'q' .. tail
end
local numsub = sharded and 'SHARDNUMSUB' or 'NUMSUB'
-- What is to be done, by parts/write.
local changed, grows = false, false -- a new state; not where memory is out
-- Of a line in the state: what is before it changes as well; a waiter more, as it is stored; where the life of
-- one is that was heard of again; a record for the rest, and where it goes; some came from there.
local headed, added, life_at, resting, resting_at, refilled = true
-- Of a line in its keys: a waiter more, one less, one heard of again; until when the keys live, as text.
local joined, cut, beat, till
-- One that must not come back, and until when; what is told, and by which channel.
local buried, letter, channel
