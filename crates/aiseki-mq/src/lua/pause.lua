#!lua flags=allow-oom
-- Stops or resumes the delivery of messages; publishing and acking go on.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: 1 to pause, 0 to resume.
-- Returns 1 if that changed anything.
--@include keys
--@include ring
local q = mq_keys(1)
if ARGV[1] == '1' then
  return redis.call('HSET', q.state, 'paused', '1')
end
local changed = redis.call('HDEL', q.state, 'paused')
mq_ring(q)
return changed
