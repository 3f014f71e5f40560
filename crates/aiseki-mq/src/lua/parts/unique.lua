-- Frees the unique keys of messages that leave the queue. `forget` also drops the note of which
-- key each had; a dead letter keeps it for its replay.
local function mq_free_unique(q, ids, forget)
  if redis.call('HLEN', q.holds) == 0 then
    return
  end
  local keys = redis.call('HMGET', q.holds, unpack(ids))
  for i = 1, #ids do
    if keys[i] then
      if redis.call('HGET', q.unique, keys[i]) == ids[i] then
        redis.call('HDEL', q.unique, keys[i])
      end
      if forget then
        redis.call('HDEL', q.holds, ids[i])
      end
    end
  end
end
