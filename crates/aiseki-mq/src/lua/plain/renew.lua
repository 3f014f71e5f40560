#!lua flags=allow-oom
-- A sign of life, unless the worker was given up already.
--
-- KEYS: the worker's processing list; workers.
-- ARGV: worker; lease in ms; then the payloads that it has in hand.
-- Returns one digit each: 1 still its own, 0 lost.
--@include now
local codes = {}
for i = 3, #ARGV do
  codes[#codes + 1] = redis.call('LPOS', KEYS[1], ARGV[i], 'RANK', -1) and '1' or '0'
end
local deadline = string.format('%.0f', mq_now('') + tonumber(ARGV[2]))
redis.call('ZADD', KEYS[2], deadline, ARGV[1])
return table.concat(codes)
