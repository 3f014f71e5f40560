#!lua flags=allow-oom
-- A worker's step: acks of its own deliveries, and up to `max` messages: those of lost workers,
-- those that are its own and unread (a blocking read, or one whose answer was lost), new ones.
--
-- KEYS: stream; dead letters; state.
-- ARGV: worker; lease in ms; max; crash budget; 1 to look for unread ones; number of acks; for each
--       entry, deliveries; then the entries that the worker has in hand.
-- Returns: in how many ms a lease may end (-1: none); 1 if paused; entries not delivered; one digit
--       for each ack (1 acked, 0 stale); then for each delivery: token, entry, deliveries, fields.
--@include now
--@include group
--@include fields
--@include owned
--@include remove
--@include bury_entry
local stream, dead, state = KEYS[1], KEYS[2], KEYS[3]
local worker, lease, max, budget = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local acks = tonumber(ARGV[6])
mq_group(stream, state)
redis.call('HSET', state, 'lease', lease)
local codes = {}
for i = 1, acks do
  local entry, deliveries = ARGV[5 + 2 * i], ARGV[6 + 2 * i]
  if mq_owned(stream, entry, worker, deliveries) then
    mq_remove(stream, entry)
    redis.call('HINCRBY', state, 'acked', 1)
    codes[i] = '1'
  else
    codes[i] = '0'
  end
end
local paused = redis.call('HEXISTS', state, 'paused')
local got = {}

local function deliver(entry, flat, deliveries)
  if not flat then
    -- Deleted by hand while it was out.
    redis.call('XACK', stream, 'mq', entry)
    return
  end
  local fields = mq_fields(flat)
  local failures, crashes = tonumber(fields.failures) or 0, tonumber(fields.crashes) or 0
  crashes = crashes + deliveries - 1
  local id, payload = fields.id or entry, fields.payload or ''
  if crashes >= budget then
    local reason = 'the worker was lost ' .. crashes .. ' times'
    mq_bury_entry(stream, dead, mq_now(''), entry, id, payload, failures, crashes, reason)
    return
  end
  got[#got + 1] = { entry, deliveries, id, failures, crashes, payload }
end

if max > 0 and paused == 0 then
  local from = redis.call('HGET', state, 'cursor') or '0-0'
  local claimed = redis.call('XAUTOCLAIM', stream, 'mq', worker, lease, from, 'COUNT', max)
  if claimed[1] ~= from then
    redis.call('HSET', state, 'cursor', claimed[1])
  end
  for _, each in ipairs(claimed[2]) do
    if each then
      local pending = redis.call('XPENDING', stream, 'mq', each[1], each[1], 1)[1]
      if pending then
        deliver(each[1], each[2], pending[4])
      end
    end
  end
  if ARGV[5] == '1' and #got < max then
    local hand = {}
    for i = 7 + 2 * acks, #ARGV do
      hand[ARGV[i]] = true
    end
    for i = 1, #got do
      hand[got[i][1]] = true
    end
    for _, each in ipairs(redis.call('XPENDING', stream, 'mq', '-', '+', 2000, worker)) do
      if not hand[each[1]] and #got < max then
        local entry = redis.call('XRANGE', stream, each[1], each[1])[1]
        deliver(each[1], entry and entry[2], each[4])
      end
    end
  end
  if #got < max then
    local read = redis.call(
      'XREADGROUP', 'GROUP', 'mq', worker, 'COUNT', max - #got, 'STREAMS', stream, '>'
    )
    for _, each in ipairs(read and read[1][2] or {}) do
      deliver(each[1], each[2], 1)
    end
  end
end
local out = redis.call('XPENDING', stream, 'mq')[1]
local wait = -1
if out > 0 then
  local oldest = redis.call('XPENDING', stream, 'mq', '-', '+', 1)[1]
  wait = math.max(tonumber(lease) - oldest[3], 1)
end
local reply = { wait, paused, redis.call('XLEN', stream) - out, table.concat(codes) }
if #got > 0 then
  local last = redis.call('HINCRBY', state, 'fence', #got)
  for i = 1, #got do
    reply[#reply + 1] = last - #got + i
    for field = 1, 6 do
      reply[#reply + 1] = got[i][field]
    end
  end
end
return reply
