#!lua flags=allow-oom
-- Gives messages back: as a failure (counted, to the back of the queue), released (to the front,
-- or to the back when it is not wanted at once), or to the dead letters.
--
-- KEYS: the queue's list; the worker's processing list; counts; dead letters; reasons.
-- ARGV: failure budget; then for each: payload, `fail` | `release` | `later` | `bury`, reason.
-- Returns one digit each: 1 given back, 3 it is a dead letter now, 0 stale (nothing changes).
--@include now
--@include poison
local list, processing = KEYS[1], KEYS[2]
local now = mq_now('')
local codes = {}
for i = 2, #ARGV, 3 do
  local payload, kind, reason = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local code = '1'
  if redis.call('LREM', processing, -1, payload) == 0 then
    code = '0'
  elseif kind == 'release' then
    redis.call('RPUSH', list, payload)
  elseif kind == 'later' then
    redis.call('LPUSH', list, payload)
  else
    local budget = kind == 'bury' and 0 or tonumber(ARGV[1])
    if mq_poison(KEYS[3], KEYS[4], KEYS[5], now, payload, false, budget, reason) then
      code = '3'
    else
      redis.call('LPUSH', list, payload)
    end
  end
  codes[#codes + 1] = code
end
return table.concat(codes)
