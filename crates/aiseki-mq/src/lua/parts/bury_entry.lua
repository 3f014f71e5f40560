-- Puts a message among the dead letters instead.
local function mq_bury_entry(stream, dead, now, entry, id, payload, failures, crashes, reason)
  redis.call(
    'XADD', dead, '*', 'id', id, 'failures', failures, 'crashes', crashes, 'payload', payload,
    'reason', reason, 'died', string.format('%.0f', now)
  )
  mq_remove(stream, entry)
end
