#!lua flags=allow-oom
-- The states of people, without a sign of life and without changing anything.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; then sessions.
-- Returns: now, changes (none), and the state of each.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part finish
local replies = {}
for i = 4, #ARGV do
  replies[#replies + 1] = state_of(ARGV[i])
end
return { whole(now), changes, replies }
