#!lua flags=no-writes,allow-oom
-- A page of all keys: seats, and people who wait and stand in no queue.
--
-- KEYS[1] NS:matching:state. ARGV: a cursor, about how many to look at.
-- Returns: the next cursor; then for each find: 'seat', session, room; or 'astray', session, queue.
local prefix = string.sub(KEYS[1], 1, -6)
local page = redis.call('SCAN', ARGV[1], 'MATCH', prefix .. '*', 'COUNT', ARGV[2])
local answer = { page[1] }
local function found(...)
  for _, value in ipairs({ ... }) do
    answer[#answer + 1] = value
  end
end
for _, key in ipairs(page[2]) do
  local rest = string.sub(key, #prefix + 1)
  local seated, waiting = string.match(rest, '^room:(%x+)$'), string.match(rest, '^waiting:(%x+)$')
  if seated then
    -- A reservation expires; a seat does not.
    if redis.call('PTTL', key) == -1 then
      found('seat', seated, redis.call('HGET', key, 'room') or '')
    end
  elseif waiting then
    local wait = redis.call('HMGET', key, 'queue', 'room')
    if wait[1] and not wait[2] and not redis.call('ZSCORE', prefix .. 'queue:' .. wait[1], waiting) then
      found('astray', waiting, wait[1])
    end
  end
end
return answer
