-- Puts a message at the end of the stream instead of its old entry.
local function mq_again(stream, entry, id, payload, failures, crashes)
  redis.call(
    'XADD', stream, '*', 'id', id, 'failures', failures, 'crashes', crashes, 'payload', payload
  )
  mq_remove(stream, entry)
end
