#!lua flags=allow-oom
-- What was said in a room after a number, in order.
--
-- KEYS[1] NS:matching:state. ARGV: the room; the number; how many, at most.
-- Returns: the number of the last message; then for each: number, seat, when, id, text.
--@part talk
local room, after = ARGV[1], tonumber(ARGV[2])
local list = { redis.call('HGET', talk_key(room), 'seq') or '0' }
local first = string.format('(%.0f-0', after)
for _, entry in
  ipairs(redis.call('XRANGE', talk_key(room) .. ':log', first, '+', 'COUNT', ARGV[3]))
do
  local f = entry[2]
  list[#list + 1] = string.match(entry[1], '^%d+')
  list[#list + 1] = f[2]
  list[#list + 1] = f[4]
  list[#list + 1] = f[6]
  list[#list + 1] = f[8]
end
return list
