#!lua flags=allow-oom
-- People hold no seat in a room any more, as the database says. Somebody who sits elsewhere by now
-- is not touched. Whoever sat there until this step parts from everybody else who did. Should the room
-- end with somebody absent who never came, those who did are offered the places they had.
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

-- Whether somebody loses the seat in this step who was away from the beginning; and who ever came.
local function absence(room, leaving)
  local never, came = false, {}
  for _, person in ipairs(leaving) do
    if policy.talk and person.reason == 'absent' and sits(person.session, room) then
      local seats, last, hash = talk_seats(room)
      for seat = 1, last do
        if seats[seat] and hash['came' .. seat] then
          came[seats[seat].session] = true
        end
      end
      never = never or (last > 0 and not came[person.session])
    end
  end
  return never, came
end

-- The place that somebody had who sits, in the words of an offer.
local function place_of(session)
  local p = load(session)
  local first, nth, place, since = string.match(p.stood or '', '^(%S+) (%S+) (%S+) (%S+)$')
  if first then
    local room, topic, _, requested, at = unpack(p.seat)
    local waited = rested(math.max(tonumber(at) - tonumber(since), 0))
    return string.format('%s %s:%s %.0f %s %s %s', room, topic, requested, waited, first, nth, place)
  end
end

-- Each who leaves parts from those who stay and from those who leave before them in this step.
local function leave_room(room, leaving, others, replies)
  local staying, left = {}, {}
  local never, came = absence(room, leaving)
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
      local offered = never and came[session] and person.reason == 'room_closed'
      local offer = offered and place_of(session) or nil
      redis.call('UNLINK', P .. 'room:' .. session)
      set_idle(session, person.reason, offer)
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
