-- Whether the entry is out with this worker by this delivery; XACK does not ask.
local function mq_owned(stream, entry, worker, deliveries)
  local found = redis.call('XPENDING', stream, 'mq', entry, entry, 1, worker)[1]
  return found and tostring(found[4]) == deliveries
end
