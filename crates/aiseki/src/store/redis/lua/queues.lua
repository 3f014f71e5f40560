#!lua flags=allow-oom
-- Every queue that has people.
--
-- KEYS[1] NS:matching:queues. ARGV: 1 if the oldest wait of each is asked for.
-- Returns: for each: the queue, how many wait in it, and since when the oldest does.
local prefix = string.sub(KEYS[1], 1, -2) .. ':'
local list = {}
for _, queue in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local count = redis.call('ZCARD', prefix .. queue)
  if count > 0 then
    list[#list + 1] = queue
    list[#list + 1] = count
    local oldest = '0'
    if ARGV[1] == '1' then
      oldest = redis.call('ZRANGE', prefix .. queue, 0, 0, 'WITHSCORES')[2] or '0'
    end
    list[#list + 1] = oldest
  end
end
return list
