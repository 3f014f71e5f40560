-- Remembers finished ids, so that a repeated ack is fine and a repeated publish is a duplicate.
-- Two generations bound it: the younger becomes the older when it is full or old.
-- `entries` is flat: id, token; and so on.
local function mq_remember(q, now, limit, age, entries)
  local since = tonumber(redis.call('HGET', q.state, 'memo') or '0')
  if redis.call('HLEN', q.done) >= limit or now - since > age then
    if redis.call('EXISTS', q.done) == 1 then
      redis.call('UNLINK', q.past)
      redis.call('RENAME', q.done, q.past)
    end
    redis.call('HSET', q.state, 'memo', string.format('%.0f', now))
  end
  redis.call('HSET', q.done, unpack(entries))
end
