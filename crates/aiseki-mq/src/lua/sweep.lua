#!lua flags=allow-oom
-- Looks through one page of the messages for one that is out with a worker and has no deadline (the
-- set of leases was lost, or an operator's hand removed it); its lease ends now. Also forgets what
-- workers claimed that are long gone.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: now in ms or ''; cursor, 0 to begin.
-- Returns: the next cursor, 0 at the end; how many were found.
--@include keys
--@include now
--@include meta
local q = mq_keys(1)
local page = redis.call('HSCAN', q.meta, ARGV[2], 'COUNT', 100)
local now = string.format('%.0f', mq_now(ARGV[1]))
local found = 0
for i = 1, #page[2], 2 do
  local id = page[2][i]
  if mq_meta(page[2][i + 1]) ~= '0' and not redis.call('ZSCORE', q.leased, id) then
    redis.call('ZADD', q.leased, now, id)
    found = found + 1
  end
end
if found > 0 then
  redis.call('HDEL', q.state, 'next')
end
-- Claims of workers that have gone are forgotten, a few of them each time.
local some = redis.call('HRANDFIELD', q.state, 32, 'WITHVALUES')
for i = 1, #some, 2 do
  local expires = string.match(some[i], '^claim:') and string.match(some[i + 1], '^(%d+) ')
  if expires and tonumber(expires) < tonumber(now) then
    redis.call('HDEL', q.state, some[i])
  end
end
return { page[1], found }
