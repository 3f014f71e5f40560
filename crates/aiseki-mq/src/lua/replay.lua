#!lua flags=allow-oom
-- Makes dead letters ready again, with their id and a fresh budget.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: the ids, at most 1,000.
-- Returns one digit each: 1 ready, 2 its payload is gone (only dropping helps), 3 its unique key is
--       taken by a newer message, 0 not a dead letter.
--@include keys
--@include ring
local q = mq_keys(1)
local codes = {}
local ring = false
for i = 1, #ARGV do
  local id = ARGV[i]
  local code = '1'
  local key = redis.call('HGET', q.holds, id)
  local holder = key and redis.call('HGET', q.unique, key)
  if not redis.call('ZSCORE', q.dead, id) then
    code = '0'
  elseif redis.call('HEXISTS', q.payload, id) == 0 then
    code = '2'
  elseif holder and holder ~= id then
    code = '3'
  else
    if key then
      redis.call('HSET', q.unique, key, id)
    end
    redis.call('ZREM', q.dead, id)
    redis.call('HDEL', q.reason, id)
    redis.call('HDEL', q.meta, id)
    redis.call('LPUSH', q.ready, id)
    ring = true
  end
  codes[#codes + 1] = code
end
if ring then
  mq_ring(q)
end
return table.concat(codes)
