-- As a member of a quorum: since when this server keeps its state. The mark goes with the data, and
-- names the run of the server that wrote it, since a restart may have brought back old data.

function R.since_birth(mark, longest, keeps)
  local run = string.match(call('INFO', 'server'), 'run_id:(%w+)') or ''
  local since, of = string.match(call('GET', mark) or '', '^(%d+) (%w*)$')
  since = tonumber(since)
  if not since or (of ~= run and not keeps) then
    since = now
    call('SET', mark, string.format('%.0f %s', now, run))
  end
  return math.max(0, since + longest - now), run
end
