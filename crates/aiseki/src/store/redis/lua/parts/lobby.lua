-- What the transitions are made of. The rule is that of the crate `aiseki-lobby`, function by
-- function under the same names; random sequences are compared with it.
--
-- KEYS[1] NS:matching:state    HASH: the last ticket, the highest score, the last room id, how many
--                              announcements there were, when a server last ticked, since when
--                              presence counts anew, and when people last parted
-- KEYS[2] NS:matching:queues   SET of the queues that have people, as TOPIC:ROOM_TYPE
-- KEYS[3] NS:matching:unsettled SET of topics on which a room may be possible that nobody looked for
-- KEYS[4] NS:matching:alarms   ZSET of the moments at which somebody has to be looked at
-- KEYS[5] NS:matching:reservations HASH room -> who was taken for it, until it is confirmed
-- KEYS[6] NS:recorder          there while somebody can write rooms down
-- KEYS[7] to KEYS[20]          the message queue of formed rooms
--
-- The keys of single people, queues and moments begin as KEYS[1] does and so are in its slot:
--   queue:QUEUE    ZSET session -> waiting since, in ms and fractions that keep the order
--   waiting:SESSION HASH: the wait; of somebody who has taken up an earlier place again, `first` and
--                  `place` are the time and the ticket to which it belongs
--   room:SESSION   HASH: the seat, and the place that was had before; it expires with the reservation
--                  until the room is confirmed
--   blocks:SESSION SET of those whom the person never meets again
--   parted:SESSION HASH of those with whom the person shared a room -> when they parted; it expires
--                  when the last of them may be met again
--   idle:SESSION   why somebody is idle, and since when; then the place that may be taken up again, as
--                  its room, queue, what counts as waited, first, nth and place
--   alarms:MS      LIST of people to be looked at at that moment
--
-- ARGV[1] now in ms, '' for the server's time, or '<' and until when in ms, by the server's time, this call
--         may be done: afterwards whoever sent it has been told that it failed
-- ARGV[2] the policy: wait timeout, fallback after, reservation ttl, presence timeout, closed grace,
--         whether queues merge, the width of a moment, after how long without a tick presence begins
--         anew, how long people of a room may be away (all in ms), whether there are rooms to talk
--         in, for how long people who have shared a room meet others first (in ms), then SIZE:FALLBACK
--         of each room type
-- ARGV[3] random bits for room ids, as the last sixteen digits of a UUID with its variant
local P = string.sub(KEYS[1], 1, -6)
local deadline = tonumber(string.match(ARGV[1], '^<(%d+)$'))
local virtual = ARGV[1] ~= '' and not deadline
local now = mq_now(virtual and ARGV[1] or '')
if deadline and now > deadline then
  return redis.error_reply(string.format('LATE %d', now))
end
local STEP = 1 / 4096
local LOOK_AHEAD, SCAN_LIMIT, COMPARISONS = 32, 256, 4096
local ROOMS_PER_STEP, REFUSALS, REASON_KEPT, REMATCH_WAIT, REST = 32, 5, 600000, 30000, 60000

local policy = { types = {}, of = {} }
do
  local numbers = {}
  for word in string.gmatch(ARGV[2], '%S+') do
    local size, fallback = string.match(word, '^(%d+):(%d+)$')
    if size then
      local room_type = { size = tonumber(size), fallback = tonumber(fallback) }
      policy.types[#policy.types + 1] = room_type
      policy.of[size] = room_type
    else
      numbers[#numbers + 1] = tonumber(word)
    end
  end
  policy.wait_timeout, policy.fallback_after, policy.reservation_ttl = unpack(numbers, 1, 3)
  policy.presence_timeout, policy.closed_grace = unpack(numbers, 4, 5)
  policy.merge, policy.width, policy.untended = numbers[6] == 1, numbers[7], numbers[8]
  -- How long people of a room may be away (0: for ever), and whether there are rooms to talk in.
  policy.away, policy.talk = numbers[9], numbers[10] == 1
  policy.rematch_after = numbers[11]
end

local counters = redis.call('HMGET', KEYS[1], 'ticket', 'latest', 'room', 'tended', 'anew', 'parted')
local ticket = tonumber(counters[1] or '0')
local latest = tonumber(counters[2] or '0')
local last_room = tonumber(counters[3] or '0')
-- Presence counts from here for everybody who was last seen before. While no server was there, or
-- Redis was not, nobody could show a sign of life.
local anew = tonumber(counters[5] or '0')
local last_parted = tonumber(counters[6] or '0')
if counters[4] and now - tonumber(counters[4]) > policy.untended then
  anew = now
  redis.call('HSET', KEYS[1], 'anew', string.format('%.0f', now), 'tended', string.format('%.0f', now))
end
-- Whether the clock runs as it should. When it has stepped back, order is kept with more effort.
local in_order = math.floor(latest) <= now

-- What happened, for the caller; who is told of it; rooms to be published; topics to look at.
local changes, told, rooms, unsettled = {}, {}, {}, {}
local people, queues = {}, {}
-- How many people each queue has, and how many it had before this step.
local lengths, lengths_before = {}, {}
-- Who entered in this step, by queue in the order of arrival: they are written down at its end, so
-- that somebody who is seated at once never stands in a queue.
local fresh = {}
-- Whose alarm has to be entered for which moment.
local alarms = {}

local NOW = string.format('%d', now)
local function whole(number)
  -- Most times that are written are the present one.
  return number == now and NOW or string.format('%d', number)
end

-- Up to five words of one change. Spelled out, because it is done several times for each person.
local function tell(a, b, c, d, e)
  local n = #changes
  changes[n + 1], changes[n + 2], changes[n + 3], changes[n + 4], changes[n + 5] = a, b, c, d, e
end

-- Topic, room type and key of a queue.
local function queue_of(queue)
  local known = queues[queue]
  if not known then
    local topic, size = string.match(queue, '^(-?%d+):(%d+)$')
    known = { topic = topic, size = size, key = P .. 'queue:' .. queue }
    queues[queue] = known
  end
  return known
end

local function length(queue)
  local known = lengths[queue]
  if not known then
    known = redis.call('ZCARD', queue_of(queue).key)
    lengths[queue], lengths_before[queue] = known, known
  end
  return known
end

-- The people of a reservation as it is written down.
local function people_of(text)
  local sessions, n = {}, 0
  for word in string.gmatch(text, '%S+') do
    n = n + 1
    if n > 5 and n % 4 == 2 then
      sessions[#sessions + 1] = word
    end
  end
  return sessions
end

local function score_of(p)
  return p.first + p.nth * STEP
end

-- The place of somebody, as their seat keeps it.
local function stood_of(p)
  return string.format('%d %d %d %d', p.first, p.nth, p.place, p.since)
end

-- A score with all its digits: a step is 0.000244140625 ms.
local function score_text(ms, nth)
  return string.format('%d.%012d', ms + math.floor(nth / 4096), nth % 4096 * 244140625)
end

local function add_to_queue(session, p)
  local before = length(p.queue)
  local score = score_text(p.first, p.nth)
  lengths[p.queue] = before + redis.call('ZADD', queue_of(p.queue).key, score, session)
end

local function remove_from_queue(queue, ...)
  lengths[queue] = length(queue) - redis.call('ZREM', queue_of(queue).key, ...)
end

-- Where somebody stands: `kind` is idle, waiting, reserved or seated.
local function load(session)
  local p = people[session]
  if p then
    return p
  end
  local w = redis.call(
    'HMGET', P .. 'waiting:' .. session,
    'queue', 'since', 'nth', 'ticket', 'seen', 'alarm', 'held', 'refusals', 'room', 'leaving', 'gone',
    'first', 'place'
  )
  if w[1] then
    p = {
      kind = w[9] and 'reserved' or 'waiting',
      queue = w[1],
      since = tonumber(w[2]),
      nth = tonumber(w[3]),
      ticket = tonumber(w[4]),
      seen = tonumber(w[5]),
      alarm = tonumber(w[6]),
      held = tonumber(w[7] or '0'),
      refusals = tonumber(w[8] or '0'),
      room = w[9],
      leaving = w[10],
      -- When somebody is absent who has closed the last connection.
      gone = tonumber(w[11] or nil),
      first = tonumber(w[12] or w[2]),
      place = tonumber(w[13] or w[4]),
    }
  else
    local seat =
      redis.call('HMGET', P .. 'room:' .. session, 'room', 'topic', 'size', 'requested', 'at', 'stood')
    if seat[1] then
      p = { kind = 'seated', room = seat[1], seat = { unpack(seat, 1, 5) }, stood = seat[6] }
    else
      p = { kind = 'idle' }
    end
  end
  people[session] = p
  return p
end

-- When the room was formed that somebody is held for. Without its key the reservation has lapsed.
local function held_since(session, p)
  p.at = p.at or tonumber(redis.call('HGET', P .. 'room:' .. session, 'at') or '0')
  return p.at
end

local function absent_at(p)
  if p.gone and p.seen >= anew then
    return p.gone
  end
  return math.max(p.seen, anew) + policy.presence_timeout
end

local function over(p)
  if p.since + policy.wait_timeout <= now then
    return 'wait_expired'
  elseif absent_at(p) <= now then
    return 'absent'
  end
end

local function fallback_at(p)
  local room_type = policy.of[queue_of(p.queue).size]
  if room_type and room_type.fallback > 0 then
    return p.since + policy.fallback_after
  end
end

local function moment(at)
  return math.ceil(at / policy.width) * policy.width
end

local function next_alarm(p)
  local at = math.min(p.since + policy.wait_timeout, absent_at(p))
  local ripe = fallback_at(p)
  if ripe and ripe > now and ripe < at then
    at = ripe
  end
  if p.held > now and p.held < at then
    at = p.held
  end
  return moment(at)
end

-- Enters somebody's alarm, with the others of this step; what stood in an earlier list for them counts
-- no more, because the hash says which alarm is theirs.
local function set_alarm(session, p, at)
  p.alarm = at
  local text = whole(at)
  alarms[text] = alarms[text] or {}
  table.insert(alarms[text], session)
  return text
end

local function write_alarms()
  for moment_text, sessions in pairs(alarms) do
    if redis.call('RPUSH', P .. 'alarms:' .. moment_text, unpack(sessions)) == #sessions then
      redis.call('ZADD', KEYS[4], moment_text, moment_text)
    end
  end
  alarms = {}
end

-- From now on somebody is idle; `offer` is the place that they may take up again.
local function set_idle(session, reason, offer)
  local key, value = P .. 'idle:' .. session, reason .. ' ' .. whole(now)
  if offer then
    value = value .. ' ' .. offer
  end
  if virtual then
    redis.call('SET', key, value)
  else
    redis.call('SET', key, value, 'PX', REASON_KEPT)
  end
  people[session] = { kind = 'idle', reason = reason, at = now, offer = offer }
  told[#told + 1] = session
end

-- Why somebody is idle, since when, and the words of what is offered; nothing once it is forgotten.
local function idle_of(session)
  local p = load(session)
  local reason, at, offer = p.reason, p.at, p.offer
  if not reason then
    local text = redis.call('GET', P .. 'idle:' .. session)
    if text then
      reason, at, offer = string.match(text, '^(%S+) (%d+) ?(.*)$')
      at = tonumber(at)
    end
  end
  if reason and now < at + REASON_KEPT then
    return reason, at, offer ~= '' and offer
  end
end

-- What counts of a wait that is taken up again.
local function rested(waited)
  return math.min(waited, policy.wait_timeout - math.min(REST, math.floor(policy.wait_timeout / 2)))
end

-- Ends the wait of somebody who stands in a queue, for `reason` unless it was over before that.
local function drop(session, p, reason)
  reason = over(p) or reason
  remove_from_queue(p.queue, session)
  -- In a long queue somebody has come into view who was too far from the head before.
  if length(p.queue) >= LOOK_AHEAD then
    unsettled[queue_of(p.queue).topic] = true
  end
  redis.call('UNLINK', P .. 'waiting:' .. session)
  set_idle(session, reason)
  tell('dropped', session, whole(p.ticket), reason)
end

-- Ends the hold of a room on somebody: back in the queue at the old place, or idle when they wanted
-- to leave, when the wait has ended meanwhile, or when rooms with them were refused too often.
local function put_back(session, p, refused)
  local waiting = P .. 'waiting:' .. session
  redis.call('UNLINK', P .. 'room:' .. session)
  if refused then
    p.refusals = p.refusals + 1
    p.held = now + math.min(1000 * 2 ^ (p.refusals - 1), 30000)
  end
  -- Nobody could show a sign of life that counted while the room was being written.
  p.seen, p.gone = now, nil
  local reason = p.leaving or (p.refusals >= REFUSALS and 'failed') or over(p)
  if reason then
    redis.call('UNLINK', waiting)
    set_idle(session, reason)
    tell('dropped', session, whole(p.ticket), reason)
    return
  end
  p.kind, p.room = 'waiting', nil
  local alarm = set_alarm(session, p, next_alarm(p))
  redis.call('HDEL', waiting, 'room', 'gone')
  redis.call('HSET', waiting, 'seen', whole(now), 'alarm', alarm)
  if p.refusals > 0 then
    redis.call('HSET', waiting, 'held', whole(p.held), 'refusals', p.refusals)
  end
  add_to_queue(session, p)
  unsettled[queue_of(p.queue).topic] = true
  told[#told + 1] = session
  tell('returned', session, whole(p.ticket))
end

-- Where somebody stands once what is over is ended: their wait, or a reservation that has lapsed.
local function look(session)
  local p = load(session)
  if p.kind == 'reserved' and held_since(session, p) + policy.reservation_ttl <= now then
    put_back(session, p, false)
    p = people[session]
  end
  if p.kind == 'waiting' and over(p) then
    drop(session, p, 'absent')
    p = people[session]
  end
  return p
end

local function note_sign(session, p, closed)
  if p.kind ~= 'waiting' or p.fresh or over(p) then
    return
  end
  local key = P .. 'waiting:' .. session
  p.seen = now
  if closed then
    p.gone = now + math.min(policy.closed_grace, policy.presence_timeout)
    redis.call('HSET', key, 'seen', whole(now), 'gone', whole(p.gone))
  else
    if p.gone then
      p.gone = nil
      redis.call('HDEL', key, 'gone')
    end
    redis.call('HSET', key, 'seen', whole(now))
  end
  -- A later end is noticed when the alarm goes off; only an earlier one has to move it.
  local alarm = next_alarm(p)
  if alarm < p.alarm then
    redis.call('HSET', key, 'alarm', set_alarm(session, p, alarm))
  end
end
