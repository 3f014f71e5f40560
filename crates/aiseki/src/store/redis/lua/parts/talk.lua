-- The live side of rooms. Needs `now`; the keys of a room are built from the prefix of a namespace.
--
--   NS:room:ROOM        HASH: `s1` and so on the sessions by seat, `left1` why a seat was given up, `away1`
--                       until when somebody is away, `came1` once they have been there, `limit1` the bucket
--                       of their messages, `seq` and `at` of the last message
--   NS:room:ROOM:log    STREAM of what was said; the id is the number of the message
--   NS:room:ROOM:ids    HASH seat:id -> number, so that a repetition is said once
--   NS:room:ROOM:here   HASH connection -> seat, and until when it counts unless it is renewed
--   NS:rooms:due        ZSET of "ROOM SEAT" by when somebody has to be looked at
--   NS:rooms:ended:ROOM why a room ended, for a while
--   NS:rooms            the channel on which servers tell each other that there is something new
local TALK = string.sub(KEYS[1], 1, string.find(KEYS[1], '}', 1, true)) .. ':'
local ENDED_KEPT = 86400000

local function talk_key(room)
  return TALK .. 'room:' .. room
end

local function talk_changed(room)
  redis.call('SPUBLISH', TALK .. 'rooms', 'c ' .. room)
end

local function talk_due(room, seat, at)
  redis.call('ZADD', TALK .. 'rooms:due', string.format('%d', at), room .. ' ' .. seat)
end

-- A room begins, or more of its people are seated: they have as long to come as somebody away. When
-- they have to be looked at is added to `due`, for one call at the end.
local function talk_begin(room, newcomers, at, away, due)
  local fields = {}
  for _, person in ipairs(newcomers) do
    fields[#fields + 1] = 's' .. person.seat
    fields[#fields + 1] = person.session
    if away > 0 then
      local until_text = string.format('%d', at + away)
      fields[#fields + 1] = 'away' .. person.seat
      fields[#fields + 1] = until_text
      due[#due + 1] = until_text
      due[#due + 1] = room .. ' ' .. person.seat
    end
  end
  redis.call('HSET', talk_key(room), unpack(fields))
end

-- The seats of a room: session, why it was left, until when somebody is away.
local function talk_seats(room)
  local flat, hash = redis.call('HGETALL', talk_key(room)), {}
  for i = 1, #flat, 2 do
    hash[flat[i]] = flat[i + 1]
  end
  local seats, last = {}, 0
  for field, session in pairs(hash) do
    local seat = tonumber(string.match(field, '^s(%d+)$'))
    if seat then
      seats[seat] = { session = session, left = hash['left' .. seat], away = hash['away' .. seat] }
      last = math.max(last, seat)
    end
  end
  return seats, last, hash
end

local function talk_seat_of(seats, last, session)
  for seat = 1, last do
    if seats[seat] and seats[seat].session == session and not seats[seat].left then
      return seat
    end
  end
end

-- Which seats have a connection that counts.
local function talk_here(room, at)
  local flat, here = redis.call('HGETALL', talk_key(room) .. ':here'), {}
  for i = 1, #flat, 2 do
    local seat, lapse = string.match(flat[i + 1], '^(%d+) (%d+)')
    if seat and tonumber(lapse) > at then
      here[tonumber(seat)] = math.max(here[tonumber(seat)] or 0, tonumber(lapse))
    elseif seat then
      redis.call('HDEL', talk_key(room) .. ':here', flat[i])
    end
  end
  return here
end

local function talk_end(room, reason)
  local key = talk_key(room)
  redis.call('UNLINK', key, key .. ':log', key .. ':ids', key .. ':here')
  redis.call('SET', TALK .. 'rooms:ended:' .. room, reason, 'PX', ENDED_KEPT)
  talk_changed(room)
end

local TALK_WORDS = { left = 'left', absent = 'away', banned = 'banned' }

-- People lost their seats, `list` of session and the reason why they are idle. With fewer than two
-- left the room ends for the reason of the first. Of a room that has not ended and of which nothing is
-- there, what was said is lost: whoever is connected is told to look (`talk` says whether there is
-- anybody).
local function talk_leave(room, list, talk)
  local seats, last = talk_seats(room)
  if last == 0 then
    if talk and redis.call('EXISTS', TALK .. 'rooms:ended:' .. room) == 0 then
      local left = false
      for _, person in ipairs(list) do
        left = left or TALK_WORDS[person.reason] ~= nil
      end
      if left then
        talk_changed(room)
      else
        talk_end(room, 'store_lost')
      end
    end
    return
  end
  local reason
  for _, person in ipairs(list) do
    local seat = talk_seat_of(seats, last, person.session)
    local word = TALK_WORDS[person.reason]
    reason = reason or word
    if seat then
      seats[seat].left = word or 'closed'
      redis.call('HSET', talk_key(room), 'left' .. seat, seats[seat].left)
      redis.call('HDEL', talk_key(room), 'away' .. seat)
      redis.call('ZREM', TALK .. 'rooms:due', room .. ' ' .. seat)
    end
  end
  local held = 0
  for seat = 1, last do
    if seats[seat] and not seats[seat].left then
      held = held + 1
    end
  end
  if held < 2 then
    talk_end(room, reason or 'closed')
  else
    talk_changed(room)
  end
end
