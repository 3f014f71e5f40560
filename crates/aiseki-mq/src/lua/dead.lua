#!lua flags=no-writes
-- Lists dead letters, the oldest first.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: how many to skip; how many to list, at most 1,000.
-- Returns for each: id, when it died in ms, reason, meta, body.
--@include keys
local q = mq_keys(1)
local from = tonumber(ARGV[1])
local page = redis.call('ZRANGE', q.dead, from, from + tonumber(ARGV[2]) - 1, 'WITHSCORES')
local reply = {}
for i = 1, #page, 2 do
  local id = page[i]
  reply[#reply + 1] = id
  reply[#reply + 1] = page[i + 1]
  reply[#reply + 1] = redis.call('HGET', q.reason, id) or ''
  reply[#reply + 1] = redis.call('HGET', q.meta, id) or ''
  reply[#reply + 1] = redis.call('HGET', q.payload, id) or ''
end
return reply
