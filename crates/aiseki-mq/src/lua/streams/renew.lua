#!lua flags=allow-oom
-- Starts the leases of a worker's deliveries anew.
--
-- KEYS: stream; state.
-- ARGV: worker; then for each: entry, deliveries.
-- Returns one digit each: 1 renewed, 0 lost.
--@include group
--@include owned
local stream = KEYS[1]
mq_group(stream, KEYS[2])
local codes = {}
for i = 2, #ARGV, 2 do
  local code = '0'
  if mq_owned(stream, ARGV[i], ARGV[1], ARGV[i + 1]) then
    redis.call('XCLAIM', stream, 'mq', ARGV[1], 0, ARGV[i], 'JUSTID')
    code = '1'
  end
  codes[#codes + 1] = code
end
return table.concat(codes)
