-- A mutex that somebody holds or waits for, taken apart without the helpers that the general way makes
-- anew in every call: making them takes longer than everything that is done here. `ordinary`: there is
-- nothing in it that only the general way knows how to handle.
local call, pack, unpack_bytes, sub = redis.call, struct.pack, struct.unpack, string.sub
local last, shut, tomb, latch, side, line_side, held, permits, untold, ends, waiting, dead, seq, silent,
  max, name, at, _
local ordinary = false
if state and not observed then
  local kind = sub(state, 1, 4)
  if kind == 'hf1f' then
    last, shut, tomb, latch, side, line_side, held, permits, untold, ends, waiting, dead, seq, silent,
      max, _, name, at = unpack_bytes('>ddddddI4dI4dI4ddI4I4I2c0I2c0', state, 5)
    ordinary = (waiting == 0 or dead > now) and held == 0 and silent == 0 and max == 0 and shut <= now
      and latch <= now
  elseif kind == 'hf1x' then
    last, name, at = unpack_bytes('>dI2c0', state, 5)
    shut, tomb, latch, side, line_side, held, permits, untold, ends = 0, 0, 0, 0, 0, 0, 0, 0, 0
    waiting, dead, seq, silent, max = 0, 0, 0, 0, 0
    ordinary = true
  end
end
-- Written with a life that reaches a day beyond this: docs/formats/redis.md.
local kept_until = ordinary and math.max(tomb, side, line_side) or 0
local holder = '' -- as it is stored
local fence, fin, since, mode, offer, wanted, revoked, holder_id, holder_process
if ordinary and at <= #state then
  holder = sub(state, at)
  fence, fin, since, mode, offer, wanted, revoked, holder_id, holder_process =
    unpack_bytes('>dddBBBBc16c16', holder)
  ordinary = mode == EXCLUSIVE and revoked == 0 and fin > now
end
local brace = string.find(KEYS[1], '}:s:', 1, true)
local base, tail = sub(KEYS[1], 1, brace + 1), sub(KEYS[1], brace + 3)
local line, deaths, records = base .. 'w' .. tail, base .. 'd' .. tail, base .. 'q' .. tail
local numsub = sharded and 'SHARDNUMSUB' or 'NUMSUB'
-- What is to be done, by parts/mutex_write: a new state; grows: not where memory is out; a waiter more;
-- one less; one heard of again; until when the line's keys live, as text; one that must not come back,
-- and until when; what is told, and by which channel.
local changed, grows, joined, cut, beat, till, buried, letter, channel = false, false
