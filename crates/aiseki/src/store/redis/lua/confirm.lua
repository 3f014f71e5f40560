#!lua flags=allow-oom
-- Rooms were written down, or will never be. Each is settled with its people: those who hold a seat
-- in it are matched, when they are reserved by it or back in the queue with the same ticket, and
-- nobody alone; the others of the room are back in place, or idle when the room has already ended.
-- The messages that announced the rooms are acked in the same step.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; [4] how many acks; then for each ack: id, token; then for each room: what
--       became of it (`written`, `lapsed`, `refused`, `ended`), room, topic, size, when it was formed,
--       how many people, and for each of them: session, ticket, requested room type, 1 if they hold a
--       seat in it.
-- Returns: now, changes, and for each room the sessions whose seats have to be given up.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@include unique
--@include memo
--@include ack
--@part lobby
--@part talk
--@part finish
-- Waits that have ended, rooms that are settled, and who has to be looked at when: each written in one
-- call at the end.
local ended, settled, due = {}, {}, {}

local function sits(session, room)
  local p = load(session)
  return p.kind == 'seated' and p.room == room
end

local function can_sit(person, room)
  local p = load(person.session)
  return (p.kind == 'reserved' and p.room == room)
    or (p.kind == 'waiting' and p.ticket == person.ticket)
end

local function seat(person, room)
  local session = person.session
  local p = people[session]
  local key = P .. 'room:' .. session
  if p.kind == 'waiting' then
    remove_from_queue(p.queue, session)
  end
  ended[#ended + 1] = P .. 'waiting:' .. session
  -- Whoever is held has the seat's key already, unless it has just lapsed.
  local kept = p.kind == 'reserved' and not virtual and redis.call('PERSIST', key) == 1
  if not kept then
    redis.call(
      'HSET', key,
      'room', room.id, 'topic', room.topic, 'size', room.size, 'requested', person.requested,
      'at', room.at, 'stood', stood_of(p)
    )
  end
  people[session] = {
    kind = 'seated', room = room.id,
    seat = { room.id, room.topic, room.size, person.requested, room.at },
  }
  -- Marked, so that a join that holds its answer knows what it waits for.
  told[#told + 1] = '+' .. session
end

local function settle_room(outcome, room)
  local newcomers, sitting = {}, 0
  for _, person in ipairs(room.people) do
    if sits(person.session, room.id) then
      sitting = sitting + 1
    elseif person.seated and can_sit(person, room.id) then
      newcomers[#newcomers + 1] = person
    end
  end
  if #newcomers > 0 and sitting + #newcomers >= 2 then
    local seated = {}
    for _, person in ipairs(newcomers) do
      seat(person, room)
      seated[#seated + 1] = person.session
    end
    if policy.talk then
      talk_begin(room.id, newcomers, now, policy.away, due)
    end
    tell('seated', room.id, table.concat(seated, ' '))
  end
  local give_up = {}
  for _, person in ipairs(room.people) do
    local p = load(person.session)
    if p.kind == 'reserved' and p.room == room.id then
      if outcome == 'ended' then
        redis.call('UNLINK', P .. 'room:' .. person.session, P .. 'waiting:' .. person.session)
        set_idle(person.session, 'room_closed')
        tell('dropped', person.session, whole(p.ticket), 'room_closed')
      else
        put_back(person.session, p, outcome == 'refused')
      end
    end
    if person.seated and not sits(person.session, room.id) then
      give_up[#give_up + 1] = person.session
    end
  end
  settled[#settled + 1] = room.id
  return give_up
end

local acks = tonumber(ARGV[4])
if acks > 0 then
  mq_ack(mq_keys(7), now, 10000, 300000, 5, acks)
end
local replies = {}
local i = 5 + 2 * acks
while i <= #ARGV do
  local outcome = ARGV[i]
  local room =
    { id = ARGV[i + 1], topic = ARGV[i + 2], size = ARGV[i + 3], at = ARGV[i + 4], people = {} }
  local count = tonumber(ARGV[i + 5])
  i = i + 6
  for seat_number = 1, count do
    table.insert(room.people, {
      seat = seat_number,
      session = ARGV[i],
      ticket = tonumber(ARGV[i + 1]),
      requested = ARGV[i + 2],
      seated = ARGV[i + 3] == '1',
    })
    i = i + 4
  end
  replies[#replies + 1] = settle_room(outcome, room)
end
if #ended > 0 then
  redis.call('UNLINK', unpack(ended))
end
if #settled > 0 then
  redis.call('HDEL', KEYS[5], unpack(settled))
end
if #due > 0 then
  redis.call('ZADD', TALK .. 'rooms:due', unpack(due))
end
finish()
return { whole(now), changes, replies }
