#!lua flags=allow-oom
-- Gives the messages of a lost worker back to the queue, in their order, a bounded number at a
-- time. All of them count as crashed: nothing tells which of them it was.
--
-- KEYS: the queue's list; the lost worker's processing list; workers; counts; dead letters;
--       reasons.
-- ARGV: worker; crash budget.
-- Returns how many were given back or buried.
--@include now
--@include poison
local list, processing, workers = KEYS[1], KEYS[2], KEYS[3]
local now = mq_now('')
local deadline = redis.call('ZSCORE', workers, ARGV[1])
if deadline and tonumber(deadline) > now then
  return 0
end
local moved = 0
while moved < 100 do
  -- From the newest to the oldest, so that the oldest is the next to be taken.
  local payload = redis.call('LPOP', processing)
  if not payload then
    redis.call('ZREM', workers, ARGV[1])
    break
  end
  local reason = 'its worker was lost too often, last ' .. ARGV[1]
  local budget = tonumber(ARGV[2])
  if not mq_poison(KEYS[4], KEYS[5], KEYS[6], now, payload, true, budget, reason) then
    redis.call('RPUSH', list, payload)
  end
  moved = moved + 1
end
return moved
