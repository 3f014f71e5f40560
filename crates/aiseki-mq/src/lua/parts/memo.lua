-- Remembers finished ids, so that a repeated ack is fine and a repeated publish is a duplicate.
-- Two generations bound it: the younger becomes the older when it is full or old.
-- `entries` is flat: id, token; and so on. A caller that has read the state already gives what it
-- knows as `q.known`, and writes what has changed itself, from `q.later`: one call for all of it.
local function mq_remember(q, now, limit, age, entries)
  local memo = q.known and q.known.memo or redis.call('HMGET', q.state, 'memo', 'remembered')
  local since, count = tonumber(memo[1] or '0'), tonumber(memo[2] or '0')
  if count >= limit or now - since > age then
    if redis.call('EXISTS', q.done) == 1 then
      redis.call('UNLINK', q.past)
      redis.call('RENAME', q.done, q.past)
    end
    since, count = now, 0
  end
  count = count + redis.call('HSET', q.done, unpack(entries))
  local changes = { 'memo', string.format('%.0f', since), 'remembered', count }
  if not q.later then
    redis.call('HSET', q.state, unpack(changes))
    return
  end
  for i = 1, #changes do
    q.later[#q.later + 1] = changes[i]
  end
end
