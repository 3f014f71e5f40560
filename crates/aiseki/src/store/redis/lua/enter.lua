#!lua
-- People begin to wait, in the order of checks of the public contract, and the rooms that this makes
-- possible are formed. Refused when memory is short: it is the only step that brings something new.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; [4] the limits: burst and period in ms of sessions, the same of addresses
--       (bursts of 0: no limits); then for each: session, queue, address, its group, what the door
--       said (banned, unknown_topic, inactive_topic, or '' for welcome), and the room for which a place
--       is to be taken up again, or ''.
-- Returns: now, changes, and for each: `entered` and the state, or `reserved` when a room with this
--       person is being written; `limited` and the ms until it may be
--       tried again; `turned_away` and why; `already` and the state. At last 0 when somebody has
--       entered and this Redis may lack seats of the database.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part seating
--@part rate
--@part finish
local limits = {}
for word in string.gmatch(ARGV[4], '%S+') do
  limits[#limits + 1] = tonumber(word)
end
-- Takes an attempt into account; answers for how long it is refused.
local function limited(session, group)
  if limits[1] == 0 then
    return 0
  end
  local of_session, of_address = P .. 'rate:session:' .. session, P .. 'rate:address:' .. group
  local wait = math.max(
    rate_wait(of_session, now, limits[1], limits[2]),
    rate_wait(of_address, now, limits[3], limits[4])
  )
  if wait == 0 then
    rate_count(of_session, now, limits[1], limits[2])
    rate_count(of_address, now, limits[3], limits[4])
  end
  return wait
end

-- The place of somebody who enters now: after everybody who came before, also when the clock has
-- stepped back, and since then when the newest of the queue did at the earliest.
local function next_place(queue)
  if in_order then
    latest = math.max(now, latest + STEP)
    return math.floor(latest), (latest - math.floor(latest)) / STEP
  end
  local score, since = now, now
  local newest = redis.call('ZRANGE', queue_of(queue).key, -1, -1)[1]
  if newest then
    local p = load(newest)
    if p.kind == 'waiting' then
      score, since = math.max(now, score_of(p) + STEP), math.max(now, p.since)
    end
  end
  -- Who is held for a room comes back to the old place should it be undone.
  local held = redis.call('HVALS', KEYS[5])
  for _, room in ipairs(rooms) do
    held[#held + 1] = room[2]
  end
  for _, text in ipairs(held) do
    for _, session in ipairs(people_of(text)) do
      local p = load(session)
      if p.kind == 'reserved' and p.queue == queue then
        score = math.max(score, score_of(p) + STEP)
      end
    end
  end
  latest = math.max(latest, score)
  return since, math.floor((score - since) / STEP + 0.5)
end

-- The place that somebody idle may take up again, when it is offered for this room and queue.
local function kept_place(session, queue, room)
  local _, _, offer = idle_of(session)
  local of, at, waited, first, nth, place =
    string.match(offer or '', '^(%S+) (%S+) (%d+) (%d+) (%d+) (%d+)$')
  if of == room and at == queue then
    return {
      since = math.max(now - rested(tonumber(waited)), 0),
      first = tonumber(first), nth = tonumber(nth), place = tonumber(place),
    }
  end
end

local function enter(session, queue, address, group, door, resume)
  local q = queue_of(queue)
  local p = look(session)
  local waits = p.kind == 'waiting' or p.kind == 'reserved'
  if waits and p.queue == queue then
    if p.kind == 'waiting' then
      note_sign(session, p, false)
      settle(q.topic, ROOMS_PER_STEP)
    elseif p.leaving == 'left' then
      -- Waiting again takes back a cancel, but neither a ban nor the end of the topic.
      p.leaving = nil
      redis.call('HDEL', P .. 'waiting:' .. session, 'leaving')
    end
    return { p.kind == 'reserved' and 'reserved' or 'entered', unpack(state_of(session)) }
  end
  local wait = limited(session, group)
  if wait > 0 then
    return { 'limited', whole(wait) }
  elseif door ~= '' then
    return { 'turned_away', door }
  elseif waits or p.kind == 'seated' then
    return { 'already', unpack(state_of(session)) }
  end
  ticket = ticket + 1
  local kept = resume ~= '' and kept_place(session, queue, resume)
  if kept then
    p = kept
  else
    if not in_order then
      write_arrivals()
    end
    local since, nth = next_place(queue)
    p = { since = since, first = since, nth = nth, place = ticket }
  end
  p.kind, p.queue, p.ticket, p.seen, p.held, p.refusals = 'waiting', queue, ticket, now, 0, 0
  p.address, p.alarm = address, next_alarm(p)
  people[session] = p
  if kept then
    redis.call('HSET', P .. 'waiting:' .. session, unpack(wait_of(session, p)))
    add_to_queue(session, p)
  else
    p.fresh = true
    lengths[queue] = length(queue) + 1
    local arrivals = fresh[queue] or { waiting = 0 }
    fresh[queue] = arrivals
    arrivals[#arrivals + 1] = session
    arrivals.waiting = arrivals.waiting + 1
  end
  told[#told + 1] = session
  tell('entered', session, whole(ticket), queue, whole(p.since))
  settle(q.topic, ROOMS_PER_STEP)
  return { p.kind == 'reserved' and 'reserved' or 'entered', unpack(state_of(session)) }
end

-- What is read of many people at once: whether there is anything of them at all, which is rare for
-- people who enter, and their buckets.
local theirs, bucket_keys = {}, {}
for i = 5, #ARGV, 6 do
  theirs[#theirs + 1] = P .. 'waiting:' .. ARGV[i]
  theirs[#theirs + 1] = P .. 'room:' .. ARGV[i]
  bucket_keys[#bucket_keys + 1] = P .. 'rate:session:' .. ARGV[i]
  bucket_keys[#bucket_keys + 1] = P .. 'rate:address:' .. ARGV[i + 3]
end
if redis.call('EXISTS', unpack(theirs)) == 0 then
  for i = 5, #ARGV, 6 do
    people[ARGV[i]] = { kind = 'idle' }
  end
end
if limits[1] > 0 then
  rate_read(bucket_keys)
end
local replies = {}
for i = 5, #ARGV, 6 do
  replies[#replies + 1] = enter(unpack(ARGV, i, i + 5))
end
rate_write()
finish()
-- A Redis that has lost something is another run than the one whose seats were read back, or has no
-- word of that at all. It is looked at in this step, because in the next it may be the next run.
local known = 1
if ticket ~= tonumber(counters[1] or '0') then
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  known = redis.call('GET', string.sub(P, 1, -10) .. 'seats') == run and 1 or 0
end
return { whole(now), changes, replies, known }
