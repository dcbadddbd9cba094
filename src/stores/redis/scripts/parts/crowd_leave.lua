-- One of several leaves: nobody waits, or the first in line takes its place, or must wait on.
if crowd then
  local id = sub(raw, 1, 16)
  holders, hold_ends = base .. 'h' .. tail, base .. 'e' .. tail
  local own, first, heir
  if call('HLEN', holders) ~= held then
    -- What is stored twice must agree; the general way counts again.
  elseif waiting == 0 then
    own = call('HGET', holders, id)
  else
    line, deaths, records = base .. 'w' .. tail, base .. 'd' .. tail, base .. 'q' .. tail
    first = call('ZRANGE', line, 0, 1)
    if #first == math.min(waiting, 2) then
      local held_by = call('HMGET', holders, id, first[1])
      local waits = call('HMGET', records, first[1], id)
      own = not held_by[2] and not waits[2] and held_by[1]
      heir = waits[1] and sub(waits[1], 9)
    end
  end
  if own then
    local kind, _, told = unpack_bytes('BBB', own, 25)
    local amount = kind == PERMIT and unpack_bytes('>I4', own, 97) or 0
    decided = waiting == 0
    if heir then
      -- One that may come in alone, or a writer that must wait for more; and it hears of it.
      local wish = string.byte(heir, 77)
      if max > 0 then
        decided = wish == PERMIT and amount == 1 and permits == max and unpack_bytes('>I4', heir, 69) == 1
      else
        decided = wish == EXCLUSIVE
      end
      channel = base .. 'c:' .. sub(heir, 17, 32)
      decided = decided and call('PUBSUB', numsub, channel)[2] > 0
      if max == 0 and held > 1 then heir = nil end
    end
    if decided then
      gone, changed = id, true
      held, permits, untold = held - 1, permits - amount, math.max(0, untold - 1 + told)
      if heir then
        local ttl, _, reserved, block = unpack_bytes('>dddI4', heir, 41)
        waiting, cut = waiting - 1, first[1]
        local whole = ttl
        ttl = math.min(ttl, reserved)
        fence = math.max(last + 1, now)
        last, fin = fence + math.max(block, 1) - 1, now + ttl
        local others = waiting > 0 and 1 or 0
        if max > 0 then
          taken = cut
          hold = pack('>dddBBBBc0', fence, fin, now, PERMIT, 1, others, 0, heir)
          local need = whole + 60000000
          if held == 0 or side < now + need then
            side = math.max(side, now + 2 * need)
            holders_till = math.floor(side / 1000)
          end
          held, permits, untold = held + 1, permits + 1, untold + 1 - others
          if held == 1 or fin < ends then ends = fin end
        else
          holds, whose, since, offer, wanted = true, heir, now, 1, others
        end
        letter = pack('>c1c16dddB', 'g', heir, fence, ttl, now, 1 + 2 * others)
      end
    end
  end
end
