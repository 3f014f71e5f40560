#!lua flags=allow-oom
-- Takes messages out of the queue, whatever state they are in; a worker that has one loses it.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: now in ms or ''; bound and age in ms of the memo; then the ids.
-- Returns one digit each: 1 cancelled, 3 it is a dead letter (drop it instead), 0 not there.
--
-- A ready message stays in the list as an id without a payload until somebody takes it there:
-- looking for it would cost as much as the list is long.
--@include keys
--@include now
--@include unique
--@include memo
local q = mq_keys(1)
local now = mq_now(ARGV[1])
local codes = {}
for i = 4, #ARGV do
  local id = ARGV[i]
  local code = '1'
  if redis.call('ZSCORE', q.dead, id) then
    code = '3'
  elseif redis.call('HEXISTS', q.payload, id) == 0 then
    code = '0'
  else
    local out = redis.call('ZREM', q.delayed, id) + redis.call('ZREM', q.leased, id)
    if out == 0 then
      redis.call('SADD', q.cancelled, id)
    end
    redis.call('HDEL', q.payload, id)
    redis.call('HDEL', q.meta, id)
    mq_free_unique(q, { id }, true)
    mq_remember(q, now, tonumber(ARGV[2]), tonumber(ARGV[3]), { id, 'cancelled' })
    redis.call('HINCRBY', q.state, 'cancelled', 1)
  end
  codes[#codes + 1] = code
end
return table.concat(codes)
