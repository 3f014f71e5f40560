#!lua flags=allow-oom
-- Removes dead letters for good.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: the ids, at most 1,000.
-- Returns how many there were.
--@include keys
--@include unique
local q = mq_keys(1)
local dropped = 0
for i = 1, #ARGV do
  local id = ARGV[i]
  if redis.call('ZREM', q.dead, id) == 1 then
    redis.call('HDEL', q.payload, id)
    redis.call('HDEL', q.meta, id)
    redis.call('HDEL', q.reason, id)
    mq_free_unique(q, { id }, true)
    dropped = dropped + 1
  end
end
return dropped
