#!lua flags=allow-oom
-- Looks at everybody of a queue anew, a page at a time, because the policy has changed: waits may end
-- sooner, and fallbacks come sooner.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; [4] the queue; the score after which the page begins; how many.
-- Returns: now, changes, and the score of the last, or '' when there are no more.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part finish
local key = queue_of(ARGV[4]).key
local page =
  redis.call('ZRANGEBYSCORE', key, '(' .. ARGV[5], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[6])
for i = 1, #page, 2 do
  local p = look(page[i])
  if p.kind == 'waiting' then
    local alarm = next_alarm(p)
    if alarm < p.alarm then
      redis.call('HSET', P .. 'waiting:' .. page[i], 'alarm', set_alarm(page[i], p, alarm))
    end
  end
end
unsettled[queue_of(ARGV[4]).topic] = true
finish()
return { whole(now), changes, page[#page] or '' }
