#!lua flags=allow-oom
-- A worker's step: a sign of life, acks, and up to `max` messages: first those that stand in its
-- own list unread (a blocking move, or a move whose answer was lost), then from the queue.
--
-- KEYS: the queue's list; the worker's processing list; workers; counts; state.
-- ARGV: worker; lease in ms; max; number of acks; for each its payload; then the digests of the
--       payloads that the worker has in hand, acks not among them.
-- Returns: in how many ms another worker's sign of life is due (-1: none); 1 if paused; length of
--       the queue; one digit for each ack (1 acked, 0 stale); how many names of lost workers
--       follow; the names; then for each delivery: token, digest, counts, payload.
--@include now
local list, processing, workers, counts, state = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now = mq_now('')
local worker, lease, max, acks = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local codes = {}
for i = 1, acks do
  local payload = ARGV[4 + i]
  -- The oldest stand at the right, near where they are looked for.
  codes[i] = tostring(redis.call('LREM', processing, -1, payload))
  if codes[i] == '1' then
    redis.call('HDEL', counts, redis.sha1hex(payload))
    redis.call('HINCRBY', state, 'acked', 1)
  end
end
redis.call('ZADD', workers, string.format('%.0f', now + lease), worker)
local paused = redis.call('HEXISTS', state, 'paused')
local got = {}
if max > 0 and paused == 0 then
  local hand = {}
  for i = 5 + acks, #ARGV do
    hand[ARGV[i]] = (hand[ARGV[i]] or 0) + 1
  end
  local mine = redis.call('LRANGE', processing, -2000, -1)
  for i = #mine, 1, -1 do
    local digest = redis.sha1hex(mine[i])
    if (hand[digest] or 0) > 0 then
      hand[digest] = hand[digest] - 1
    elseif #got < max then
      got[#got + 1] = mine[i]
    end
  end
  while #got < max do
    local payload = redis.call('LMOVE', list, processing, 'RIGHT', 'LEFT')
    if not payload then
      break
    end
    got[#got + 1] = payload
  end
end
local lost = redis.call('ZRANGEBYSCORE', workers, '-inf', now, 'LIMIT', 0, 8)
local first = redis.call('ZRANGE', workers, 0, 0, 'WITHSCORES')
local wait = first[1] ~= worker and math.max(tonumber(first[2]) - now, 0) or -1
local reply = { wait, paused, redis.call('LLEN', list), table.concat(codes), #lost }
for i = 1, #lost do
  reply[#reply + 1] = lost[i]
end
if #got > 0 then
  local last = redis.call('HINCRBY', state, 'fence', #got)
  for i = 1, #got do
    local digest = redis.sha1hex(got[i])
    reply[#reply + 1] = last - #got + i
    reply[#reply + 1] = digest
    reply[#reply + 1] = redis.call('HGET', counts, digest) or ''
    reply[#reply + 1] = got[i]
  end
end
return reply
