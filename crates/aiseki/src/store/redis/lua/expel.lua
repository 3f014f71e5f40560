#!lua flags=allow-oom
-- Ends the waits of people for a reason, such as a ban. A seat is not touched. Of somebody who is
-- held for a room it is noted what they are should it be undone.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; [4] why; then sessions.
-- Returns: now, changes.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part leaving
--@part finish
for i = 5, #ARGV do
  local p = look(ARGV[i])
  if p.kind == 'waiting' then
    drop(ARGV[i], p, ARGV[4])
  elseif p.kind == 'reserved' then
    leave(ARGV[i], p, ARGV[4])
  end
end
finish()
return { whole(now), changes }
