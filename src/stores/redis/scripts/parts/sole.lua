-- A release by the one that holds, where nobody waits and nobody watches. Where it has ended meanwhile, nobody has come
-- since, so it is given back as well as before its end, and nobody looks at the clock, which takes as long
-- as the writing. From key, state, observed and raw to `answer`, and `state` as it is then.
if state and not observed and string.sub(state, 1, 4) == 'hf2x' then
  local _, kept, name, _, _, _, _, id = struct.unpack('>ddI2c0dddI4c16', state, 5)
  if id == string.sub(raw, 1, 16) then
    local bytes = 'hf2i' .. string.sub(state, 5, 22 + #name)
    local done = redis.pcall('SET', key, bytes, 'KEEPTTL')
    if done.err and string.find(done.err, 'OOM', 1, true) then
      -- Out of memory: once a script has written, the server lets it write on. Its life reaches a day
      -- beyond the hold's end.
      done = redis.pcall('PEXPIREAT', key, 86400000 + math.ceil(kept / 1000))
      if type(done) == 'number' then done = redis.pcall('SET', key, bytes, 'KEEPTTL') end
    end
    if done.err then
      answer = done
    else
      answer, state = 0, bytes
    end
  end
end
