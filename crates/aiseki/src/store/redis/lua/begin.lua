#!lua flags=allow-oom
-- A server begins to work. Presence starts anew for everybody: who was connected to a server that
-- ended needs time to come back.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua.
-- Returns: now, changes (none), and 1 if the last server to begin followed another policy.
--@include now
--@part lobby
redis.call('HSET', KEYS[1], 'anew', whole(now), 'tended', whole(now))
local before = redis.call('GET', P .. 'policy')
redis.call('SET', P .. 'policy', ARGV[2])
return { whole(now), changes, (before and before ~= ARGV[2]) and 1 or 0 }
