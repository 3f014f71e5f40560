#!lua flags=allow-oom
-- A worker's step: acks what is done, takes back what has expired, makes ready what is due, and
-- claims up to `max` messages with a fencing token each.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: now in ms or ''; worker; sequence number of the claim; max (0 to 1,000); lease in ms;
--       crash budget; bound and age in ms of the memo of acked ids; number of acks; then for each
--       ack: id, token.
-- Returns: in how many ms a lease or delay may be due (-1: none); 1 if paused; messages left ready;
--       one digit for each ack (1 acked, 2 acked before, 0 stale); then for each delivery: id,
--       body, meta.
--
-- A claim repeated with the same worker and sequence returns the same deliveries, those that still
-- are this worker's; one with a lower sequence, that was late on its way, claims nothing.
--@include keys
--@include now
--@include ring
--@include large
--@include meta
--@include unique
--@include bury
--@include memo
--@include due
--@include ack
local q = mq_keys(1)
local now = mq_now(ARGV[1])
local worker, sequence, max = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local lease, crash_budget = tonumber(ARGV[5]), tonumber(ARGV[6])
local acks = tonumber(ARGV[9])

-- One read of the state, and one write of what has changed in it.
local state = redis.call(
  'HMGET', q.state,
  'paused', 'fence', 'run', 'next', 'memo', 'remembered', 'acked', 'claim:' .. worker
)
q.known = { memo = { state[5], state[6] }, acked = tonumber(state[7] or '0') }
q.later = {}
local codes = ''
if acks > 0 then
  codes = mq_ack(q, now, tonumber(ARGV[7]), tonumber(ARGV[8]), 10, acks)
end
local paused = state[1] and 1 or 0
-- Until `next` nothing is due: it is never later than the first lease or delay, which only a look
-- can tell. Without a lease it is an operator who asks, and means it.
local NEVER = 9007199254740991
local upcoming = tonumber(state[4] or '0')
if lease == 0 or upcoming <= now then
  local ms = mq_due(q, now, state[3], lease, crash_budget)
  upcoming = ms < 0 and NEVER or now + ms
end
local wait = upcoming < NEVER and upcoming - now or -1
local reply = { wait, paused, 0, codes }

-- What the claim with this sequence got, when its answer was lost.
local function claimed_before(text)
  local ids = {}
  for id in string.gmatch(text, '\n([^\n]+)') do
    ids[#ids + 1] = id
  end
  if #ids == 0 then
    return
  end
  local bodies = redis.call('HMGET', q.payload, unpack(ids))
  local metas = redis.call('HMGET', q.meta, unpack(ids))
  for i = 1, #ids do
    local token, _, _, _, holder = mq_meta(metas[i])
    if token ~= '0' and holder == worker and bodies[i] then
      reply[#reply + 1] = ids[i]
      reply[#reply + 1] = bodies[i]
      reply[#reply + 1] = metas[i]
    end
  end
end

-- An id in `ready` without a readable payload was cancelled, or its payload is lost.
local function without_payload(id, body)
  if redis.call('SREM', q.cancelled, id) == 1 then
    return
  end
  local reason = body and 'the payload cannot be read' or 'the payload is gone'
  local _, failures, crashes, last = mq_meta(redis.call('HGET', q.meta, id))
  mq_bury(q, now, id, failures, crashes, last, reason)
end

-- Tokens only grow, even when the counter was lost: it starts again from the time.
local fence = math.max(tonumber(state[2] or '0'), now * 1000)
if not state[2] and ARGV[1] == '' then
  -- A millisecond is long enough to lose the counter and to need it again.
  local time = redis.call('TIME')
  fence = time[1] * 1000000 + time[2]
end
local deadline = string.format('%.0f', now + lease)
local names, leases, changed = {}, {}, {}

-- Leases one message, unless it has no payload or is out with a worker already.
local function take(id, body, meta)
  if not body or string.byte(body, 14) ~= 32 then
    without_payload(id, body)
    return
  end
  local held, counts = '0', ':0:0:0:'
  if meta then
    local failures, crashes, last
    held, failures, crashes, last = mq_meta(meta)
    counts = ':' .. failures .. ':' .. crashes .. ':' .. last .. ':'
  end
  if held ~= '0' then
    return
  end
  fence = fence + 1
  meta = string.format('%.0f', fence) .. counts .. worker
  local n = #names + 1
  names[n] = id
  leases[2 * n - 1] = deadline
  leases[2 * n] = id
  changed[2 * n - 1] = id
  changed[2 * n] = meta
  reply[3 * n + 2] = id
  reply[3 * n + 3] = body
  reply[3 * n + 4] = meta
end

local exhausted = false
local function claim()
  -- Ids without a message leave gaps, which are filled; a bounded number of times.
  for _ = 1, 8 do
    local wanted = max - #names
    local ids = wanted > 0 and redis.call('RPOP', q.ready, wanted)
    if not ids then
      -- A claim that wanted more has emptied the list.
      exhausted = wanted > 0
      break
    end
    local bodies = redis.call('HMGET', q.payload, unpack(ids))
    local metas = redis.call('HMGET', q.meta, unpack(ids))
    for i = 1, #ids do
      take(ids[i], bodies[i], metas[i])
    end
    if #ids < wanted then
      exhausted = true
      break
    end
  end
  if #names == 0 then
    return ''
  end
  redis.call('ZADD', q.leased, unpack(leases))
  redis.call('HSET', q.meta, '', MQ_LARGE, unpack(changed))
  upcoming = math.min(upcoming, now + lease)
  return '\n' .. table.concat(names, '\n')
end

local function later(field, value)
  q.later[#q.later + 1] = field
  q.later[#q.later + 1] = value
end

if max > 0 and paused == 0 then
  local text = state[8]
  local before = text and tonumber(string.match(text, '^%d+ (%d+)')) or -1
  if before == sequence then
    claimed_before(text)
  elseif before < sequence then
    if not state[3] then
      mq_grace(q, nil, lease)
    end
    local keep = math.max(lease * 4, 60000)
    local claimed = claim()
    later('claim:' .. worker, string.format('%.0f ', now + keep) .. ARGV[3] .. claimed)
    if claimed ~= '' then
      later('fence', string.format('%.0f', fence))
    end
  end
end
if upcoming ~= tonumber(state[4] or '0') then
  later('next', string.format('%.0f', upcoming))
end
if #q.later > 0 then
  redis.call('HSET', q.state, unpack(q.later))
end
local left = exhausted and 0 or redis.call('LLEN', q.ready)
reply[3] = left
-- This worker has all it wants, and there is more: somebody else is woken.
if left > 0 and paused == 0 and (#reply - 4) / 3 >= max then
  mq_ring(q)
end
return reply
