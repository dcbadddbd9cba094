-- An attempt where nobody holds, nobody waits, nobody watches, without what the others need. From key, state,
-- observed, raw, name and now to `answer`, and `state` as it is then.
if not observed and (not state or string.sub(state, 1, 4) == 'hf2i') then
  local not_after, ttl, _, _, block, _, _, mode = struct.unpack('>ddddI4I4I4B', raw, 33)
  if mode == 0 and (not_after == 0 or now <= not_after) then
    local fence, kept = now, 0
    if state then
      local last
      last, kept = struct.unpack('>dd', state, 5)
      if last >= now then fence = last + 1 end
    end
    local fin = now + ttl
    local renewed = kept < fin -- for some time: a new life costs more than the old one kept
    if renewed then kept = fin + ttl end
    local bytes = struct.pack('>c4ddI2c0dddI4c0', 'hf2x', fence + math.max(block, 1) - 1, kept, #name, name,
      fence, fin, now, 0, raw)
    local done
    if not renewed then
      done = redis.pcall('SET', key, bytes, 'KEEPTTL')
    elseif state then
      done = redis.pcall('SET', key, bytes, 'PX', 86400000 + math.ceil(2 * ttl / 1000))
    else
      done = redis.pcall('SET', key, bytes, 'PX', 86400000 + math.ceil(2 * ttl / 1000), 'NX')
    end
    if not done then
      answer = { -1, now, 8, 0 } -- a foreign value, which MGET does not show
    elseif done.err then
      answer = done
    else
      state = bytes
      answer = fence == now and now or { 1, now, fence, ttl, 0 }
    end
  end
end
