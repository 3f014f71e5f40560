-- Counts a failure or a crash of a payload of the plain engine, and says whether it is over its
-- budget; if so, it is put among the dead letters.
local function mq_poison(counts, dead, reasons, now, payload, crashed, budget, reason)
  local digest = redis.sha1hex(payload)
  local failures, crashes =
    string.match(redis.call('HGET', counts, digest) or '0:0', '^(%d+):(%d+)$')
  failures, crashes = tonumber(failures), tonumber(crashes)
  if crashed then
    crashes = crashes + 1
  else
    failures = failures + 1
  end
  if (crashed and crashes or failures) < budget then
    redis.call('HSET', counts, digest, failures .. ':' .. crashes)
    return false
  end
  redis.call('HDEL', counts, digest)
  redis.call('LPUSH', dead, payload)
  local died = string.format('%.0f', now)
  redis.call('HSET', reasons, digest, died .. ':' .. failures .. ':' .. crashes .. ':' .. reason)
  return true
end
