#!lua flags=allow-oom
-- A worker goes: what it has is given back to the front of the queue, not counted.
--
-- KEYS: the queue's list; the worker's processing list; workers.
-- ARGV: worker.
-- Returns how many were given back; called again until there are none.
local moved = 0
while moved < 1000 do
  if not redis.call('LMOVE', KEYS[2], KEYS[1], 'LEFT', 'RIGHT') then
    redis.call('ZREM', KEYS[3], ARGV[1])
    break
  end
  moved = moved + 1
end
return moved
