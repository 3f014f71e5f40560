#!lua flags=allow-oom
-- Looks at who is due: connections that were not renewed, people who are away for too long, rooms
-- whose log is lost. A bounded number.
--
-- KEYS[1] NS:matching:state. ARGV: now in ms or ''; the time away in ms (0: not limited); how many, at
--       most; in how many ms somebody else may act when the caller does not.
-- Returns: for each whose seat is to be given up: the room, and the session; or '' for a room whose log
--       is lost.
--@include now
--@part talk
local now, away = mq_now(ARGV[1]), tonumber(ARGV[2])
local due = redis.call(
  'ZRANGEBYSCORE', TALK .. 'rooms:due', '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[3]
)
local list = {}
for _, member in ipairs(due) do
  local room, seat = string.match(member, '^(%S+) (%d+)$')
  seat = tonumber(seat)
  local seats, last = talk_seats(room)
  local s = seats[seat]
  local lapse = s and talk_here(room, now)[seat]
  if last == 0 and seat == 0 then
    list[#list + 1] = room
    list[#list + 1] = ''
    talk_due(room, seat, now + tonumber(ARGV[4]))
  elseif not s or s.left or (not lapse and away == 0 and s.away == nil) then
    redis.call('ZREM', TALK .. 'rooms:due', member)
    if s and not s.left then
      talk_changed(room)
    end
  elseif lapse then
    talk_due(room, seat, lapse)
  elseif not s.away then
    -- The server of the last connection ended without a word.
    redis.call('HSET', talk_key(room), 'away' .. seat, string.format('%.0f', now + away))
    talk_due(room, seat, now + away)
    talk_changed(room)
  elseif tonumber(s.away) > now then
    talk_due(room, seat, tonumber(s.away))
  else
    list[#list + 1] = room
    list[#list + 1] = s.session
    talk_due(room, seat, now + tonumber(ARGV[4]))
  end
end
return list
