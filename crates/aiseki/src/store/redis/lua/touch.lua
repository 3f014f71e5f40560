#!lua flags=allow-oom
-- Signs of life of many people. Somebody whose time is already over is not revived.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; [4] `present` or `closed`; then sessions.
-- Returns: now, changes (none).
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part finish
for i = 5, #ARGV do
  note_sign(ARGV[i], load(ARGV[i]), ARGV[4] == 'closed')
end
finish()
return { whole(now), changes }
