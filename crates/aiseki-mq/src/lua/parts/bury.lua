-- Makes a message a dead letter: its payload and counts stay, its unique key is free.
-- Needs mq_free_unique.
local function mq_bury(q, now, id, failures, crashes, last, reason)
  redis.call('ZREM', q.leased, id)
  redis.call('ZADD', q.dead, string.format('%.0f', now), id)
  redis.call('HSET', q.reason, id, reason)
  redis.call('HSET', q.meta, id, '0:' .. failures .. ':' .. crashes .. ':' .. last .. ':')
  redis.call('HINCRBY', q.state, 'buried', 1)
  mq_free_unique(q, { id }, false)
end
