#!lua flags=allow-oom
-- People hold no seat in a room any more, as the database says. Somebody who sits elsewhere by now
-- is not touched. Whoever sat there until this step parts from everybody else who did.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; then for each room, named once: the room, how many leave it, how many others
--       may sit there; for each who leaves: session, why they are idle; and the sessions of the others.
-- Returns: now, changes, and for each who leaves 1 if they sat there until now.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part talk
--@part parting
--@part finish
local function sits(session, room)
  local p = load(session)
  return p.kind == 'seated' and p.room == room
end

-- Each who leaves parts from those who stay and from those who leave before them in this step.
local function leave_room(room, leaving, others, replies)
  local staying, left = {}, {}
  for _, session in ipairs(others) do
    if sits(session, room) then
      staying[#staying + 1] = session
    end
  end
  for _, person in ipairs(leaving) do
    local session = person.session
    local sat = sits(session, room)
    if sat then
      for _, other in ipairs(staying) do
        part(session, other)
      end
      for _, other in ipairs(left) do
        part(session, other)
      end
      left[#left + 1] = session
      redis.call('UNLINK', P .. 'room:' .. session)
      set_idle(session, person.reason)
      tell('vacated', room, session)
    end
    replies[#replies + 1] = sat and 1 or 0
  end
  talk_leave(room, leaving, policy.talk)
end

local replies = {}
local i = 4
while i <= #ARGV do
  local room, leave, stay = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local leaving, others = {}, {}
  i = i + 3
  for _ = 1, leave do
    table.insert(leaving, { session = ARGV[i], reason = ARGV[i + 1] })
    i = i + 2
  end
  for _ = 1, stay do
    table.insert(others, ARGV[i])
    i = i + 1
  end
  leave_room(room, leaving, others, replies)
end
finish()
return { whole(now), changes, replies }
