#!lua flags=no-writes,allow-oom
-- The rooms in which people sit.
--
-- KEYS[1] NS:matching:state. ARGV: sessions.
-- Returns: for each the room, or '' for none.
local prefix = string.sub(KEYS[1], 1, -6)
local rooms = {}
for i, session in ipairs(ARGV) do
  local key = prefix .. 'room:' .. session
  rooms[i] = redis.call('PTTL', key) == -1 and redis.call('HGET', key, 'room') or ''
end
return rooms
