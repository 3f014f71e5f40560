#!lua flags=allow-oom
-- How many messages are in which state. Elements carry no time, so the age is that of the oldest
-- since it was first seen at the end of the list by this script: the least that it can be.
--
-- KEYS: the queue's list; dead letters; state; then the processing lists of all workers.
-- ARGV: nothing.
-- Returns: ready, delayed (always 0), leased, dead, acked, age in ms, 1 if paused.
--@include now
local state = KEYS[3]
local now = mq_now('')
local known = redis.call('HMGET', state, 'acked', 'paused', 'fence', 'seen', 'since')
local leased = 0
for i = 4, #KEYS do
  leased = leased + redis.call('LLEN', KEYS[i])
end
local age = 0
local oldest = redis.call('LINDEX', KEYS[1], -1)
if oldest then
  local seen = (known[3] or '0') .. ':' .. redis.sha1hex(oldest)
  if seen == known[4] then
    age = now - tonumber(known[5])
  else
    redis.call('HSET', state, 'seen', seen, 'since', string.format('%.0f', now))
  end
end
return {
  redis.call('LLEN', KEYS[1]),
  0,
  leased,
  redis.call('LLEN', KEYS[2]),
  tonumber(known[1] or '0'),
  age,
  known[2] and 1 or 0,
}
