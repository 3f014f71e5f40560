#!lua flags=no-writes,allow-oom
-- A page of a queue: who stands in it without a wait.
--
-- KEYS[1] NS:matching:state. ARGV: the queue, a cursor, about how many to look at.
-- Returns: the next cursor, how many were looked at, and the sessions without a wait.
local prefix = string.sub(KEYS[1], 1, -6)
local page = redis.call('ZSCAN', prefix .. 'queue:' .. ARGV[1], ARGV[2], 'COUNT', ARGV[3])
local answer = { page[1], #page[2] / 2 }
for i = 1, #page[2], 2 do
  if redis.call('EXISTS', prefix .. 'waiting:' .. page[2][i]) == 0 then
    answer[#answer + 1] = page[2][i]
  end
end
return answer
