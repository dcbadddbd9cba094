-- A mutex that somebody holds or waits for, taken apart without the helpers that the general way makes
-- anew in every call: making them takes longer than everything that is done here. `ordinary`: there is
-- nothing in it that only the general way knows how to handle.
local call, pack, unpack_bytes, sub = redis.call, struct.pack, struct.unpack, string.sub
local last, kept, shut, tomb, latch, side, line_side, held, permits, untold, ends, waiting, dead, seq, silent,
  max, name, at, _
local ordinary = false
local holder = '' -- as it is stored
local line_bytes = '' -- the line, where it is short and in the state: brief
if state and not observed then
  local kind = sub(state, 1, 4)
  if kind == 'hf2w' then
    last, kept, tomb, dead, waiting, name, holder, at = unpack_bytes('>ddddBI2c0I2c0', state, 5)
    line_bytes = sub(state, at)
    ordinary = waiting == 0 or dead > now
  elseif kind == 'hf2x' then
    last, kept, name, at = unpack_bytes('>ddI2c0', state, 5)
    holder = sub(state, at)
    tomb, waiting, dead = 0, 0, 0
    ordinary = true
  elseif kind == 'hf2f' then
    last, kept, shut, tomb, latch, side, line_side, held, permits, untold, ends, waiting, dead, seq, silent,
      max, name, at = unpack_bytes('>dddddddI4dI4dI4ddI4I4I2c0', state, 5)
    holder = sub(state, at)
    ordinary = (waiting == 0 or dead > now) and held == 0 and silent == 0 and max == 0 and shut <= now
      and latch <= now
  end
end
local brief = ordinary and (not seq or waiting == 0)
local fence, fin, since, mode, offer, wanted, revoked, holder_id, holder_process
if ordinary and holder ~= '' then
  fence, fin, since, mode, offer, wanted, revoked, holder_id, holder_process =
    unpack_bytes('>dddBBBBc16c16', holder)
  ordinary = mode == EXCLUSIVE and revoked == 0 and fin > now
end
local brace = string.find(KEYS[1], '}:s:', 1, true)
local base, tail = sub(KEYS[1], 1, brace + 1), sub(KEYS[1], brace + 3)
local line, deaths, records
if ordinary and not brief then
  line, deaths, records = base .. 'w' .. tail, base .. 'd' .. tail, base .. 'q' .. tail
end
local numsub = sharded and 'SHARDNUMSUB' or 'NUMSUB'
-- What is to be done, by parts/write: a new state; grows: not where memory is out; of a line that is
-- not brief, a waiter more, one less, one heard of again, and until when its keys live, as text; one that
-- must not come back, and until when; what is told, and by which channel.
local changed, grows, joined, cut, beat, till, buried, letter, channel = false, false
