-- A function without the flag is refused, before it does anything, when the server's memory is out: one that takes more
-- of it. Whatever gives back or keeps goes through.

local function register(flags, names)
  for i = 1, #names do
    redis.register_function({
      function_name = 'holdfast_3_' .. names[i], callback = calls[names[i]], flags = flags,
    })
  end
end

register({}, { 'attempt', 'vote', 'latch', 'batch' })
register({ 'no-writes' }, { 'version' })
register({ 'allow-oom' }, { 'leave', 'renew', 'raise', 'change', 'revoke', 'inspect', 'list', 'latch_count' })
