#!lua flags=allow-oom
-- Gives messages of lost workers back to the end of the stream, a bounded number at a time; those
-- whose workers were lost too often are dead letters.
--
-- KEYS: stream; dead letters; state.
-- ARGV: crash budget.
-- Returns how many there were.
--@include now
--@include group
--@include fields
--@include remove
--@include again
--@include bury_entry
local stream, dead, state = KEYS[1], KEYS[2], KEYS[3]
mq_group(stream, state)
local lease = redis.call('HGET', state, 'lease') or '30000'
local found = redis.call('XPENDING', stream, 'mq', 'IDLE', lease, '-', '+', 100)
for _, each in ipairs(found) do
  local entry, deliveries = each[1], each[4]
  local kept = redis.call('XRANGE', stream, entry, entry)[1]
  if kept then
    local fields = mq_fields(kept[2])
    local failures, crashes = tonumber(fields.failures) or 0, tonumber(fields.crashes) or 0
    crashes = crashes + deliveries
    local id, payload = fields.id or entry, fields.payload or ''
    if crashes >= tonumber(ARGV[1]) then
      local reason = 'the worker was lost ' .. crashes .. ' times'
      mq_bury_entry(stream, dead, mq_now(''), entry, id, payload, failures, crashes, reason)
    else
      mq_again(stream, entry, id, payload, failures, crashes)
    end
  else
    redis.call('XACK', stream, 'mq', entry)
  end
end
return #found
