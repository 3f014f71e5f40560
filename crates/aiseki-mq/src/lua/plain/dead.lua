#!lua flags=no-writes
-- Lists dead letters, the oldest first.
--
-- KEYS: dead letters; reasons.
-- ARGV: how many to skip; how many to list, at most 1,000.
-- Returns for each: digest, what is known of its end, payload.
local from, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local page = redis.call('LRANGE', KEYS[1], -(from + count), -(from + 1))
local reply = {}
for i = #page, 1, -1 do
  local digest = redis.sha1hex(page[i])
  reply[#reply + 1] = digest
  reply[#reply + 1] = redis.call('HGET', KEYS[2], digest) or ''
  reply[#reply + 1] = page[i]
end
return reply
