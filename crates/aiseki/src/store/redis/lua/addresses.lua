#!lua flags=allow-oom
-- From where people came who wait, a page of a queue after a score, or all who are held for a room.
--
-- KEYS[1] NS:matching:state; KEYS[2] NS:matching:reservations.
-- ARGV: the queue, or '' for those who are held; the score after which the page begins, how many.
-- Returns: for each: session, address, score.
local prefix = string.sub(KEYS[1], 1, -6)
local entries = {}
if ARGV[1] ~= '' then
  local key = prefix .. 'queue:' .. ARGV[1]
  entries =
    redis.call('ZRANGEBYSCORE', key, '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
else
  for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
    local n = 0
    for word in string.gmatch(text, '%S+') do
      n = n + 1
      if n > 5 and n % 4 == 2 then
        entries[#entries + 1] = word
        entries[#entries + 1] = '0'
      end
    end
  end
end
local list = {}
for i = 1, #entries, 2 do
  list[#list + 1] = entries[i]
  list[#list + 1] = redis.call('HGET', prefix .. 'waiting:' .. entries[i], 'address') or ''
  list[#list + 1] = entries[i + 1]
end
return list
