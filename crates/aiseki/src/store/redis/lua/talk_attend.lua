#!lua flags=allow-oom
-- Connections are open, or have ended.
--
-- KEYS[1] NS:matching:state. ARGV: now in ms or ''; `open` or `ended`; for how long a connection counts
--       unless it is renewed, in ms; the time away in ms (0: not limited); then for each: room, session,
--       connection.
-- Returns: how many of them were members'.
--@include now
--@part talk
local now, keep, away = mq_now(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
local members = 0
for i = 5, #ARGV, 3 do
  local room, session, connection = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local key = talk_key(room)
  local seats, last, hash = talk_seats(room)
  local seat = talk_seat_of(seats, last, session)
  if seat and ARGV[2] == 'open' then
    members = members + 1
    local before = talk_here(room, now)
    local lapse = string.format('%.0f', now + keep)
    redis.call('HSET', key .. ':here', connection, seat .. ' ' .. lapse)
    -- Should the server end, its connections lapse and the time away begins.
    talk_due(room, seat, now + keep)
    if seats[seat].away then
      redis.call('HDEL', key, 'away' .. seat)
    end
    if not hash['came' .. seat] then
      redis.call('HSET', key, 'came' .. seat, 1)
    end
    if seats[seat].away or not before[seat] then
      talk_changed(room)
    end
  elseif seat and redis.call('HDEL', key .. ':here', connection) == 1 then
    members = members + 1
    if not talk_here(room, now)[seat] then
      if away > 0 then
        redis.call('HSET', key, 'away' .. seat, string.format('%.0f', now + away))
        talk_due(room, seat, now + away)
      end
      talk_changed(room)
    end
  end
end
return { members }
