#!lua flags=allow-oom
-- A worker goes: what its last claim brought and it still holds is released, not counted, and no
-- claim of its that is still on its way will bring anything.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: now in ms or ''; worker.
-- Returns how many were released.
--@include keys
--@include now
--@include ring
--@include meta
local q = mq_keys(1)
local field = 'claim:' .. ARGV[2]
local text = redis.call('HGET', q.state, field)
local released = 0
for id in string.gmatch(text or '', '\n([^\n]+)') do
  local token, failures, crashes, _, worker = mq_meta(redis.call('HGET', q.meta, id))
  if token ~= '0' and worker == ARGV[2] then
    redis.call('ZREM', q.leased, id)
    redis.call('HSET', q.meta, id, table.concat({ 0, failures, crashes, token, '' }, ':'))
    redis.call('RPUSH', q.ready, id)
    released = released + 1
  end
end
local expires = string.format('%.0f', mq_now(ARGV[1]) + 60000)
redis.call('HSET', q.state, field, expires .. ' 9007199254740991')
if released > 0 then
  mq_ring(q)
end
return released
