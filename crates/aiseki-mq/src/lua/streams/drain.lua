#!lua flags=allow-oom
-- A worker goes: what it has is given back, not counted, and its name is forgotten.
--
-- KEYS: stream; state.
-- ARGV: worker.
-- Returns how many were given back; called again until there are none.
--@include group
--@include fields
--@include remove
--@include again
local stream = KEYS[1]
mq_group(stream, KEYS[2])
local mine = redis.call('XPENDING', stream, 'mq', '-', '+', 1000, ARGV[1])
for _, each in ipairs(mine) do
  local kept = redis.call('XRANGE', stream, each[1], each[1])[1]
  if kept then
    local fields = mq_fields(kept[2])
    local crashes = (tonumber(fields.crashes) or 0) + each[4] - 1
    local id, payload = fields.id or each[1], fields.payload or ''
    mq_again(stream, each[1], id, payload, fields.failures or 0, crashes)
  else
    redis.call('XACK', stream, 'mq', each[1])
  end
end
if #mine == 0 then
  redis.call('XGROUP', 'DELCONSUMER', stream, 'mq', ARGV[1])
end
return #mine
