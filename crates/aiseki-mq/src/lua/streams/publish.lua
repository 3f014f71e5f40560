#!lua
-- Appends messages.
--
-- KEYS: stream.
-- ARGV: for each message: id, payload.
-- Returns how many there were.
for i = 1, #ARGV, 2 do
  redis.call(
    'XADD', KEYS[1], '*', 'id', ARGV[i], 'failures', 0, 'crashes', 0, 'payload', ARGV[i + 1]
  )
end
return #ARGV / 2
