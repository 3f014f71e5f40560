-- Publishes messages into one shard. `messages` is flat: id, delay in ms, unique key or '',
-- payload; and so on, at most 1,000 messages. `limit` bounds ready, delayed and leased together
-- (0: none).
--
-- Returns nil when the limit would be passed, with nothing written. Otherwise one digit for each
-- message (1 accepted, 2 the id is known, 3 the unique key is taken), and the ids that hold the
-- taken keys, in order. Needs mq_ring and MQ_LARGE.
local function mq_publish(q, now, limit, messages)
  local count = #messages / 4
  if count == 0 then
    return '', {}
  end
  local ids = {}
  for i = 1, count do
    ids[i] = messages[4 * i - 3]
  end
  local known = redis.call('HMGET', q.payload, unpack(ids))
  local done = redis.call('HMGET', q.done, unpack(ids))
  local past = redis.call('HMGET', q.past, unpack(ids))
  -- A cancelled id may still stand in the list; until it is out, it is not free.
  local ghosts = {}
  if redis.call('SCARD', q.cancelled) > 0 then
    ghosts = redis.call('SMISMEMBER', q.cancelled, unpack(ids))
  end
  local stamp = string.format('%013d ', now)
  local codes, holders, seen, taken = {}, {}, {}, {}
  local bodies, ready, delayed, unique, holds = {}, {}, {}, {}, {}
  local soonest
  for i = 1, count do
    local id, delay, key = ids[i], tonumber(messages[4 * i - 2]), messages[4 * i - 1]
    local holder
    if key ~= '' then
      holder = taken[key] or redis.call('HGET', q.unique, key)
    end
    if known[i] or done[i] or past[i] or seen[id] or ghosts[i] == 1 then
      codes[i] = '2'
    elseif holder then
      codes[i] = '3'
      holders[#holders + 1] = holder
    else
      codes[i] = '1'
      seen[id] = true
      bodies[#bodies + 1] = id
      bodies[#bodies + 1] = stamp .. messages[4 * i]
      if key ~= '' then
        taken[key] = id
        unique[#unique + 1] = key
        unique[#unique + 1] = id
        holds[#holds + 1] = id
        holds[#holds + 1] = key
      end
      if delay > 0 then
        delayed[#delayed + 1] = string.format('%.0f', now + delay)
        delayed[#delayed + 1] = id
        if not soonest or now + delay < soonest then
          soonest = now + delay
        end
      else
        ready[#ready + 1] = id
      end
    end
  end
  local fresh = #bodies / 2
  if fresh == 0 then
    return table.concat(codes), holders
  end
  if limit > 0 then
    local length = redis.call('LLEN', q.ready)
      - redis.call('SCARD', q.cancelled)
      + redis.call('ZCARD', q.delayed)
      + redis.call('ZCARD', q.leased)
    if length + fresh > limit then
      return nil
    end
  end
  redis.call('HSET', q.payload, '', MQ_LARGE, unpack(bodies))
  if #unique > 0 then
    redis.call('HSET', q.unique, unpack(unique))
    redis.call('HSET', q.holds, unpack(holds))
  end
  if #delayed > 0 then
    local first = redis.call('ZRANGE', q.delayed, 0, 0, 'WITHSCORES')[2]
    redis.call('ZADD', q.delayed, unpack(delayed))
    -- The next step looks for itself what is due first.
    redis.call('HDEL', q.state, 'next')
    -- A blocked worker knows an earlier due time only if it is told.
    if not first or soonest < tonumber(first) then
      mq_ring(q)
    end
  end
  if #ready > 0 then
    redis.call('LPUSH', q.ready, unpack(ready))
    mq_ring(q)
  end
  redis.call('HINCRBY', q.state, 'published', fresh)
  return table.concat(codes), holders
end
