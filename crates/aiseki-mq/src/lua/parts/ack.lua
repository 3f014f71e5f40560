-- Acks deliveries: `pairs_from` is the index in ARGV of the first of `count` pairs of id and token.
-- Returns one digit each: 1 acked, 2 acked before with this token, 0 stale (nothing changes).
-- Needs mq_free_unique and mq_remember.
local function mq_ack(q, now, memo_limit, memo_age, pairs_from, count)
  local ids, tokens = {}, {}
  for i = 1, count do
    ids[i] = ARGV[pairs_from + 2 * i - 2]
    tokens[i] = ARGV[pairs_from + 2 * i - 1]
  end
  local metas = redis.call('HMGET', q.meta, unpack(ids))
  local codes, gone, memo, taken = {}, {}, {}, {}
  for i = 1, count do
    local token = tokens[i]
    local meta = metas[i]
    if meta and string.sub(meta, 1, #token + 1) == token .. ':' then
      if taken[ids[i]] then
        codes[i] = '2'
      else
        codes[i] = '1'
        taken[ids[i]] = true
        gone[#gone + 1] = ids[i]
        memo[#memo + 1] = ids[i]
        memo[#memo + 1] = token
      end
    elseif
      redis.call('HGET', q.done, ids[i]) == token
      or redis.call('HGET', q.past, ids[i]) == token
    then
      codes[i] = '2'
    else
      codes[i] = '0'
    end
  end
  if #gone > 0 then
    redis.call('ZREM', q.leased, unpack(gone))
    redis.call('HDEL', q.payload, unpack(gone))
    local acked = redis.call('HDEL', q.meta, unpack(gone))
    mq_free_unique(q, gone, true)
    mq_remember(q, now, memo_limit, memo_age, memo)
    if q.later then
      q.later[#q.later + 1] = 'acked'
      q.later[#q.later + 1] = string.format('%.0f', q.known.acked + acked)
    else
      redis.call('HINCRBY', q.state, 'acked', acked)
    end
  end
  return table.concat(codes)
end
