#!lua flags=allow-oom
-- A step of one worker, or of several of one process at once: acks what is done, takes back what
-- has expired, makes ready what is due, and claims up to `max` messages for each worker, with a
-- fencing token for each message.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: now in ms or ''; lease in ms; crash budget; bound and age in ms of the memo of acked ids;
--       number of workers; then for each worker: its name, the sequence number of its claim, max,
--       its number of acks; then, worker by worker, for each ack: id, token.
--       At most 1,000 acks and 1,000 messages in all.
-- Returns: in how many ms a lease or delay may be due (-1: none); 1 if paused; messages left ready;
--       one digit for each ack (1 acked, 2 acked before, 0 stale); then for each delivery: id,
--       body, meta. A delivery is for the worker that its meta names.
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
local lease, crash_budget = tonumber(ARGV[2]), tonumber(ARGV[3])
local workers = tonumber(ARGV[6])

-- One read of the state, and one write of what has changed in it.
local fields = { 'paused', 'fence', 'run', 'next', 'memo', 'remembered', 'acked' }
local STATES = #fields
local acks = 0
for i = 1, workers do
  fields[STATES + i] = 'claim:' .. ARGV[4 * i + 3]
  acks = acks + ARGV[4 * i + 6]
end
local state = redis.call('HMGET', q.state, unpack(fields))
q.known = { memo = { state[5], state[6] }, acked = tonumber(state[7] or '0') }
q.later = {}
local codes = ''
if acks > 0 then
  codes = mq_ack(q, now, tonumber(ARGV[4]), tonumber(ARGV[5]), 4 * workers + 7, acks)
end
local paused = state[1] and 1 or 0
-- Until `next` nothing is due: it is never later than the first lease or delay, which only a look
-- can tell. Without a lease it is an operator who asks, and means it.
local NEVER = 9007199254740991
local known_next = tonumber(state[4] or '0')
local upcoming = known_next
if lease == 0 or upcoming <= now then
  local ms = mq_due(q, now, state[3], lease, crash_budget)
  upcoming = ms < 0 and NEVER or now + ms
end
local reply = { upcoming < NEVER and upcoming - now or -1, paused, 0, codes }
local size = 4

local function deliver(id, body, meta)
  reply[size + 1] = id
  reply[size + 2] = body
  reply[size + 3] = meta
  size = size + 3
end

-- What the claim with this sequence got, when its answer was lost; the answer is how many.
local function claimed_before(worker, text)
  local ids = {}
  for id in string.gmatch(text, '\n([^\n]+)') do
    ids[#ids + 1] = id
  end
  if #ids == 0 then
    return 0
  end
  local bodies = redis.call('HMGET', q.payload, unpack(ids))
  local metas = redis.call('HMGET', q.meta, unpack(ids))
  local before = size
  for i = 1, #ids do
    local token, _, _, _, holder = mq_meta(metas[i])
    if token ~= '0' and holder == worker and bodies[i] then
      deliver(ids[i], bodies[i], metas[i])
    end
  end
  return (size - before) / 3
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

-- The token as text. Formatting a number costs as much as everything else that a claim does for a
-- message in Lua, so only every hundredth is formatted, without its last two digits.
local DIGITS = { '1', '2', '3', '4', '5', '6', '7', '8', '9', [0] = '0' }
local hundreds
local function text_of(token)
  local rest = token % 100
  local last = rest % 10
  if rest == 0 or not hundreds then
    hundreds = string.format('%.0f', (token - rest) / 100)
  end
  return hundreds .. DIGITS[(rest - last) / 10] .. DIGITS[last]
end

local function later(field, value)
  local n = #q.later
  q.later[n + 1] = field
  q.later[n + 2] = value
end

-- The claims that are new: place of the worker, how much it wants, what it gets.
local places, wants, gets = {}, {}, {}
local wanted, full = 0, false
for i = 1, workers do
  local max = tonumber(ARGV[4 * i + 5])
  if max == 0 or paused == 1 then
    full = true
  else
    local text = state[STATES + i]
    local before = text and tonumber(string.match(text, '^%d+ (%d+)')) or -1
    local sequence = tonumber(ARGV[4 * i + 4])
    if before == sequence then
      full = claimed_before(ARGV[4 * i + 3], text) >= max or full
    elseif before < sequence then
      local n = #places + 1
      places[n], wants[n], gets[n] = i, max, {}
      wanted = wanted + max
    end
  end
end

local exhausted = false
if wanted > 0 then
  if not state[3] then
    mq_grace(q, nil, lease)
  end
  -- Tokens only grow, even when the counter was lost: it starts again from the time.
  local fence = math.max(tonumber(state[2] or '0'), now * 1000)
  if not state[2] then
    -- A small hash is read through from end to end for each field.
    later('', MQ_LARGE)
    if ARGV[1] == '' then
      -- A millisecond is long enough to lose the counter and to need it again.
      local time = redis.call('TIME')
      fence = time[1] * 1000000 + time[2]
    end
  end
  local first = fence
  local deadline = string.format('%.0f', now + lease)
  local leases, changed = {}, {}
  local turn, got, worker = 1, gets[1], ARGV[4 * places[1] + 3]
  -- Ids without a message leave gaps, which are filled; a bounded number of times.
  for _ = 1, 8 do
    local missing = wanted - (fence - first)
    local ids = missing > 0 and redis.call('RPOP', q.ready, missing)
    if not ids then
      -- A claim that wanted more has emptied the list.
      exhausted = missing > 0
      break
    end
    local bodies = redis.call('HMGET', q.payload, unpack(ids))
    local metas = redis.call('HMGET', q.meta, unpack(ids))
    for i = 1, #ids do
      local id, body, meta = ids[i], bodies[i], metas[i]
      local held, counts = '0', ':0:0:0:'
      if meta then
        local failures, crashes, last
        held, failures, crashes, last = mq_meta(meta)
        counts = ':' .. failures .. ':' .. crashes .. ':' .. last .. ':'
      end
      if not body or string.byte(body, 14) ~= 32 then
        without_payload(id, body)
      elseif held == '0' then
        if #got == wants[turn] then
          turn = turn + 1
          got, worker = gets[turn], ARGV[4 * places[turn] + 3]
        end
        fence = fence + 1
        meta = text_of(fence) .. counts .. worker
        local n = 2 * (fence - first)
        leases[n - 1] = deadline
        leases[n] = id
        changed[n - 1] = id
        changed[n] = meta
        got[#got + 1] = id
        deliver(id, body, meta)
      end
    end
    if #ids < missing then
      exhausted = true
      break
    end
  end
  if fence > first then
    redis.call('ZADD', q.leased, unpack(leases))
    redis.call('HSET', q.meta, '', MQ_LARGE, unpack(changed))
    upcoming = math.min(upcoming, now + lease)
    later('fence', string.format('%.0f', fence))
  end
  local expires = string.format('%.0f ', now + math.max(lease * 4, 60000))
  for n = 1, #places do
    local ids = gets[n]
    local claimed = #ids > 0 and '\n' .. table.concat(ids, '\n') or ''
    later(fields[STATES + places[n]], expires .. ARGV[4 * places[n] + 4] .. claimed)
    full = full or #ids == wants[n]
  end
end
if upcoming ~= known_next then
  later('next', string.format('%.0f', upcoming))
end
if #q.later > 0 then
  redis.call('HSET', q.state, unpack(q.later))
end
local left = exhausted and 0 or redis.call('LLEN', q.ready)
reply[3] = left
-- Somebody here has all it wants, and there is more: somebody else is woken.
if left > 0 and paused == 0 and full then
  mq_ring(q)
end
return reply
