-- Wakes one blocked worker. One element is enough: whoever takes it looks, and rings again if it
-- leaves something for others. The element carries nothing, so losing it costs time, not a message.
local function mq_ring(q)
  if redis.call('EXISTS', q.wake) == 0 then
    redis.call('LPUSH', q.wake, '1')
  end
end
