#!lua flags=no-writes
-- Says in which states each id is; the doctor asks this of the few that looked wrong from outside.
-- Looking for an id in the ready list costs as much as the list is long, hence few at a time.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: the ids, at most 16.
-- Returns for each seven digits: ready, delayed, leased, dead, payload, out with a worker,
--       cancelled; then the id that has its unique key, or ''.
--@include keys
--@include meta
local q = mq_keys(1)
local reply = {}
local function digit(found)
  return found and found ~= 0 and '1' or '0'
end
for i = 1, #ARGV do
  local id = ARGV[i]
  local key = redis.call('HGET', q.holds, id)
  reply[#reply + 1] = digit(redis.call('LPOS', q.ready, id) ~= false)
    .. digit(redis.call('ZSCORE', q.delayed, id))
    .. digit(redis.call('ZSCORE', q.leased, id))
    .. digit(redis.call('ZSCORE', q.dead, id))
    .. digit(redis.call('HEXISTS', q.payload, id))
    .. digit(mq_meta(redis.call('HGET', q.meta, id)) ~= '0')
    .. digit(redis.call('SISMEMBER', q.cancelled, id))
  reply[#reply + 1] = key and redis.call('HGET', q.unique, key) or ''
end
return reply
