#!lua flags=allow-oom
-- Takes dead letters out, and appends them to the stream again or not.
--
-- KEYS: dead letters; stream; state.
-- ARGV: 1 to append them again, 0 to drop them; then their entries, at most 1,000.
-- Returns how many there were.
--@include group
--@include fields
local dead, stream = KEYS[1], KEYS[2]
mq_group(stream, KEYS[3])
local found = 0
for i = 2, #ARGV do
  local entry = redis.call('XRANGE', dead, ARGV[i], ARGV[i])[1]
  if entry then
    if ARGV[1] == '1' then
      local fields = mq_fields(entry[2])
      redis.call(
        'XADD', stream, '*', 'id', fields.id, 'failures', 0, 'crashes', 0,
        'payload', fields.payload
      )
    end
    redis.call('XDEL', dead, entry[1])
    found = found + 1
  end
end
return found
