#!lua flags=no-writes
-- How many messages are in which state.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: now in ms or ''.
-- Returns: ready, delayed, leased, dead, acked, age in ms of the oldest ready message, 1 if paused,
--       published, reclaimed.
--@include keys
--@include now
local q = mq_keys(1)
local now = mq_now(ARGV[1])
local oldest = 0
for _, id in ipairs(redis.call('LRANGE', q.ready, -16, -1)) do
  local since = tonumber(string.sub(redis.call('HGET', q.payload, id) or '', 1, 13))
  if since and now - since > oldest then
    oldest = now - since
  end
end
local state = redis.call('HMGET', q.state, 'acked', 'paused', 'published', 'reclaimed')
return {
  redis.call('LLEN', q.ready) - redis.call('SCARD', q.cancelled),
  redis.call('ZCARD', q.delayed),
  redis.call('ZCARD', q.leased),
  redis.call('ZCARD', q.dead),
  tonumber(state[1] or '0'),
  oldest,
  state[2] and 1 or 0,
  tonumber(state[3] or '0'),
  tonumber(state[4] or '0'),
}
