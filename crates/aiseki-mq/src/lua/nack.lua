#!lua flags=allow-oom
-- Gives deliveries back: as a failure (counted), released (not counted), or to the dead letters.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: now in ms or ''; failure budget; then for each: id, token, `fail` | `release` | `bury`,
--       delay in ms, reason.
-- Returns one digit each: 1 given back, 2 given back before with this token, 3 it is a dead letter
--       now, 0 stale (nothing changes).
--@include keys
--@include now
--@include ring
--@include meta
--@include unique
--@include bury
local q = mq_keys(1)
local now = mq_now(ARGV[1])
local budget = tonumber(ARGV[2])
local codes = {}
local ring = false

local function give_back(id, meta, delay, at_front)
  redis.call('ZREM', q.leased, id)
  redis.call('HSET', q.meta, id, meta)
  if delay > 0 then
    redis.call('ZADD', q.delayed, string.format('%.0f', now + delay), id)
    redis.call('HDEL', q.state, 'next')
  elseif at_front then
    redis.call('RPUSH', q.ready, id)
  else
    redis.call('LPUSH', q.ready, id)
  end
  ring = true
end

for i = 3, #ARGV, 5 do
  local id, token, kind, delay, reason =
    ARGV[i], ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3]), ARGV[i + 4]
  local held, failures, crashes, last = mq_meta(redis.call('HGET', q.meta, id))
  local code = '1'
  if held ~= token then
    code = last == token and '2' or '0'
  elseif kind == 'release' then
    give_back(id, table.concat({ 0, failures, crashes, token, '' }, ':'), delay, true)
  else
    failures = failures + 1
    if kind == 'bury' or failures >= budget then
      mq_bury(q, now, id, failures, crashes, token, reason)
      code = '3'
    else
      give_back(id, table.concat({ 0, failures, crashes, token, '' }, ':'), delay, false)
    end
  end
  codes[#codes + 1] = code
end
if ring then
  mq_ring(q)
end
return table.concat(codes)
