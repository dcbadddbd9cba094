-- An attempt to join readers or holders of permits, or to be the first of them.

-- Nobody holds, nobody waits; but perhaps there are tombstones.
local idle = false
if wish ~= EXCLUSIVE and not observed and not answer then
  if held then
    idle = held == 0 and waiting == 0 and not holds and shut <= now and latch <= now
  elseif waiting then
    idle = waiting == 0 and not holds
  else
    last, kept, name, tomb = 0, 0, ARGV[2] or '', 0
    idle = not state or sub(state, 1, 4) == 'hf2i'
    if idle and state then last, kept, name = unpack_bytes('>ddI2c0', state, 5) end
  end
  if idle then
    if not held then shut, latch, side, line_side, dead, seq = 0, 0, 0, 0, 0, 0 end
    held, permits, untold, ends, waiting, silent, max = 0, 0, 0, 0, 0, 0, wish == PERMIT and most or 0
    brief = false
  end
end
if (crowd or idle) and held < limit.claims and waiting < limit.claims
  and (wish == PERMIT and amount > 0 and amount <= most and most == max or wish ~= PERMIT and max == 0)
  and (not_after == 0 or now <= not_after)
  and (tomb <= now or tonumber(call('ZSCORE', base .. 't' .. tail, id) or 0) <= now) then
  holders, hold_ends = base .. 'h' .. tail, base .. 'e' .. tail
  if held > 0 and call('HLEN', holders) ~= held then
    -- What is stored twice must agree; the general way counts again.
  elseif waiting == 0 and (wish == SHARED or wish == PERMIT and permits + amount <= max) then
    if held == 0 or call('HEXISTS', holders, id) == 0 then
      fence = math.max(last + 1, now)
      last, fin = fence + math.max(block, 1) - 1, now + ttl
      taken, hold = id, pack('>dddI4c0', fence, fin, now, wish * 16777216, raw)
      local need = ttl + 60000000
      if held == 0 or side < now + need then
        side = math.max(side, now + 2 * need)
        holders_till = math.floor(side / 1000)
      end
      held, untold = held + 1, untold + 1
      if wish == PERMIT then permits = permits + amount end
      if held == 1 or fin < ends then ends = fin end
      changed, grows = true, true
      answer = fence == now and now or { 1, now, fence, ttl, 0 }
    end
  else
    line, deaths, records = base .. 'w' .. tail, base .. 'd' .. tail, base .. 'q' .. tail
    local nobodys_turn = waiting == 0 or wish == PERMIT and permits == max
    if not nobodys_turn and wish ~= PERMIT then
      -- Nor if a writer comes first in line that hears of it.
      local writer = call('ZRANGE', line, 0, 0)[1]
      writer = writer and call('HGET', records, writer)
      nobodys_turn = writer and string.byte(writer, 85) == EXCLUSIVE
        and call('PUBSUB', numsub, base .. 'c:' .. sub(writer, 25, 40))[2] > 0
    end
    local blocker = nobodys_turn and call('ZRANGE', hold_ends, 0, 0)[1]
    local there = blocker and call('HMGET', holders, blocker, id) or {}
    if there[1] and not there[2] then
      local place
      if waiting > 0 and call('HEXISTS', records, id) == 1 then
        if untold == 0 then beat, place = id, call('ZRANK', line, id) or 0 end
      elseif queued == 1 then
        joined, place = id, waiting
        seq = seq + 1
        if waiting == 0 or now + waiter_lease < dead then dead = now + waiter_lease end
        waiting = waiting + 1
        changed, grows = true, true
      else
        answer = pack('>ddBc0', now, ends - now, 0, sub(there[1], 111))
      end
      if place then
        local recheck =
          ends - now + math.min(stagger_step * math.min(place, stagger_places), stagger_limit)
        -- As with a mutex: mostly somebody leaves before that. If not, who looks again tells them.
        if untold > 0 then recheck = math.min(recheck, wanted_after) end
        local need = waiter_lease + 60000000
        if joined and waiting == 1 or line_side < now + need then
          line_side, changed = math.max(line_side, now + 2 * need), true
          till = string.format('%.0f', math.floor(line_side / 1000))
        end
        answer = pack('>ddBc0', now, recheck, 1, sub(there[1], 111))
      end
    end
  end
end
