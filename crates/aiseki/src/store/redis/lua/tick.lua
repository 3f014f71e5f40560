#!lua flags=allow-oom
-- Does what is due with nobody asking: ended waits, absent people, lapsed reservations, rooms that
-- became possible. Bounded.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; [4] how many people are looked at, at most; [5] how many topics are.
-- Returns: now, changes, in how many ms there is more to do (0: at once; -1: nothing known), and how
--       many announcements there were.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part seating
--@part finish
local function wake(session, at)
  local p = load(session)
  if p.alarm ~= at then
    return
  end
  if p.kind == 'waiting' then
    unsettled[queue_of(p.queue).topic] = true
    if over(p) then
      drop(session, p, 'absent')
    else
      redis.call('HSET', P .. 'waiting:' .. session, 'alarm', set_alarm(session, p, next_alarm(p)))
    end
  elseif p.kind == 'reserved' then
    local lapse = held_since(session, p) + policy.reservation_ttl
    if lapse <= now then
      put_back(session, p, false)
    else
      redis.call('HSET', P .. 'waiting:' .. session, 'alarm', set_alarm(session, p, moment(lapse)))
    end
  end
end

local left = tonumber(ARGV[4])
local due = -1
for _ = 1, 1000 do
  local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
  if not first then
    break
  end
  local at = tonumber(first)
  if at > now or left <= 0 then
    due = math.max(at - now, 0)
    break
  end
  local sessions = redis.call('LPOP', P .. 'alarms:' .. first, left)
  if sessions then
    left = left - #sessions
    for _, session in ipairs(sessions) do
      wake(session, at)
    end
    write_alarms()
  else
    -- A list that is empty is gone, and its moment with it.
    redis.call('ZREM', KEYS[4], first)
  end
  due = 0
end

local topics = tonumber(ARGV[5])
if topics > 0 then
  for topic in pairs(unsettled) do
    redis.call('SADD', KEYS[3], topic)
  end
  unsettled = {}
  local formed = 0
  for _, topic in ipairs(redis.call('SRANDMEMBER', KEYS[3], topics)) do
    if formed < ROOMS_PER_STEP then
      formed = formed + settle(topic, ROOMS_PER_STEP - formed)
      if not unsettled[topic] then
        redis.call('SREM', KEYS[3], topic)
      elseif recording then
        due = 0
      end
    end
  end
  if formed > 0 or (recording and redis.call('SCARD', KEYS[3]) > 0) then
    due = 0
  end
end
finish()
if not virtual then
  redis.call('HSET', KEYS[1], 'tended', whole(now))
end
return { whole(now), changes, due, redis.call('HGET', KEYS[1], 'announced') or '0' }
