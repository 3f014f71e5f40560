#!lua flags=allow-oom
-- Takes dead letters out, and puts them back into the queue or not.
--
-- KEYS: dead letters; reasons; the queue's list.
-- ARGV: 1 to put them back, 0 to drop them; then the payloads, at most 1,000.
-- Returns how many there were.
local found = 0
for i = 2, #ARGV do
  if redis.call('LREM', KEYS[1], -1, ARGV[i]) == 1 then
    redis.call('HDEL', KEYS[2], redis.sha1hex(ARGV[i]))
    if ARGV[1] == '1' then
      redis.call('LPUSH', KEYS[3], ARGV[i])
    end
    found = found + 1
  end
end
return found
