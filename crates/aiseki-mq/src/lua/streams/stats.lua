#!lua flags=allow-oom
-- How many messages are in which state.
--
-- KEYS: stream; dead letters; state.
-- ARGV: nothing.
-- Returns: ready, delayed (always 0), leased, dead, acked, age in ms of the oldest ready message,
--       1 if paused.
--@include now
--@include group
--@include fields
local stream, state = KEYS[1], KEYS[3]
mq_group(stream, state)
local known = redis.call('HMGET', state, 'acked', 'paused')
local out = redis.call('XPENDING', stream, 'mq')[1]
local last = '0-0'
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  local group = mq_fields(flat)
  if group.name == 'mq' then
    last = group['last-delivered-id']
  end
end
local age = 0
local oldest = redis.call('XRANGE', stream, '(' .. last, '+', 'COUNT', 1)[1]
if oldest then
  age = math.max(mq_now('') - tonumber(string.match(oldest[1], '^%d+')), 0)
end
return {
  redis.call('XLEN', stream) - out,
  0,
  out,
  redis.call('XLEN', KEYS[2]),
  tonumber(known[1] or '0'),
  age,
  known[2] and 1 or 0,
}
