-- Takes back leases that have ended and makes due messages ready, a bounded number of each.
-- Returns in how many ms there is more to do (0: at once), or -1 when nothing is leased or delayed.
-- Needs mq_meta and mq_bury.
local MQ_RECLAIM = 128
local MQ_PROMOTE = 512

-- After a restart of the server every lease looks ended, although its worker may be well and just
-- reconnecting: nothing is reclaimed until the server has been up for one lease. The answer is how
-- long that still takes, in ms.
local function mq_grace(q, run, lease)
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then
    return 0
  end
  local current = string.match(info, 'run_id:(%x+)')
  local uptime = string.match(info, 'uptime_in_seconds:(%d+)')
  if not current or current == run then
    return 0
  end
  local left = lease - tonumber(uptime or '0') * 1000
  if run and left > 0 then
    return left
  end
  redis.call('HSET', q.state, 'run', current)
  return 0
end

local function mq_reclaim(q, now, budget, ids)
  local metas = redis.call('HMGET', q.meta, unpack(ids))
  local ready, changed = {}, {}
  -- From the latest to the oldest: the last one pushed is the first to be taken.
  for i = #ids, 1, -1 do
    local _, failures, crashes, _, worker = mq_meta(metas[i])
    crashes = crashes + 1
    if crashes >= budget then
      local reason = 'the worker was lost ' .. crashes .. ' times, last ' .. worker
      mq_bury(q, now, ids[i], failures, crashes, '0', reason)
    else
      ready[#ready + 1] = ids[i]
      changed[#changed + 1] = ids[i]
      changed[#changed + 1] = '0:' .. failures .. ':' .. crashes .. ':0:' .. worker
    end
  end
  if #ready > 0 then
    redis.call('ZREM', q.leased, unpack(ready))
    redis.call('HSET', q.meta, unpack(changed))
    redis.call('RPUSH', q.ready, unpack(ready))
  end
  redis.call('HINCRBY', q.state, 'reclaimed', #ids)
end

local function mq_due(q, now, run, lease, budget)
  local wait = -1
  local function sooner(ms)
    if wait < 0 or ms < wait then
      wait = math.max(ms, 0)
    end
  end
  local first = redis.call('ZRANGE', q.leased, 0, 0, 'WITHSCORES')[2]
  if first and tonumber(first) <= now then
    local grace = mq_grace(q, run, lease)
    if grace > 0 then
      sooner(grace)
    else
      local ids = redis.call('ZRANGEBYSCORE', q.leased, '-inf', now, 'LIMIT', 0, MQ_RECLAIM)
      mq_reclaim(q, now, budget, ids)
      first = redis.call('ZRANGE', q.leased, 0, 0, 'WITHSCORES')[2]
      if first then
        sooner(tonumber(first) - now)
      end
    end
  elseif first then
    sooner(tonumber(first) - now)
  end
  first = redis.call('ZRANGE', q.delayed, 0, 0, 'WITHSCORES')[2]
  if first and tonumber(first) <= now then
    local ids = redis.call('ZRANGEBYSCORE', q.delayed, '-inf', now, 'LIMIT', 0, MQ_PROMOTE)
    redis.call('LPUSH', q.ready, unpack(ids))
    redis.call('ZREM', q.delayed, unpack(ids))
    first = redis.call('ZRANGE', q.delayed, 0, 0, 'WITHSCORES')[2]
  end
  if first then
    sooner(tonumber(first) - now)
  end
  return wait
end
