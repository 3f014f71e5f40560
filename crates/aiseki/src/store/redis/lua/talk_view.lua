#!lua flags=allow-oom
-- A room as it stands, and why it ended.
--
-- KEYS[1] NS:matching:state. ARGV: now in ms or ''; the room.
-- Returns: for each seat: session, why it was left or '', 1 if somebody is here, until when they are
--       away or ''; or `ended` and why, or '' when that is not known.
--@include now
--@part talk
local now, room = mq_now(ARGV[1]), ARGV[2]
local seats, last = talk_seats(room)
if last == 0 then
  return { 'ended', redis.call('GET', TALK .. 'rooms:ended:' .. room) or '' }
end
local here, list = talk_here(room, now), {}
for seat = 1, last do
  local s = seats[seat] or { session = '', left = 'left' }
  list[#list + 1] = s.session
  list[#list + 1] = s.left or ''
  list[#list + 1] = here[seat] and 1 or 0
  list[#list + 1] = s.away or ''
end
return list
