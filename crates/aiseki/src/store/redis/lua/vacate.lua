#!lua flags=allow-oom
-- People hold no seat in a room any more, as the database says. Somebody who sits elsewhere by now
-- is not touched.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; then for each: session, room, why they are idle.
-- Returns: now, changes, and for each 1 if they sat there until now.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part talk
--@part finish
local replies, by_room = {}, {}
for i = 4, #ARGV, 3 do
  local session, room, reason = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local p = load(session)
  local sat = p.kind == 'seated' and p.room == room
  if sat then
    redis.call('UNLINK', P .. 'room:' .. session)
    set_idle(session, reason)
    tell('vacated', room, session)
  end
  replies[#replies + 1] = sat and 1 or 0
  by_room[room] = by_room[room] or {}
  table.insert(by_room[room], { session = session, reason = reason })
end
for room, list in pairs(by_room) do
  talk_leave(room, list, policy.talk)
end
finish()
return { whole(now), changes, replies }
