#!lua flags=allow-oom
-- Gives messages back: as a failure (counted), released (not counted), or to the dead letters. A
-- message that is given back is a new entry at the end, with its id and counts.
--
-- KEYS: stream; dead letters.
-- ARGV: worker; failure budget; then for each: entry, deliveries, `fail` | `release` | `bury`,
--       reason.
-- Returns one digit each: 1 given back, 3 it is a dead letter now, 0 stale (nothing changes).
--@include now
--@include fields
--@include owned
--@include remove
--@include again
--@include bury_entry
local stream, dead = KEYS[1], KEYS[2]
local codes = {}
for i = 3, #ARGV, 4 do
  local entry, deliveries, kind, reason = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local found = mq_owned(stream, entry, ARGV[1], deliveries)
    and redis.call('XRANGE', stream, entry, entry)[1]
  local code = '1'
  if not found then
    code = '0'
  else
    local fields = mq_fields(found[2])
    local failures, crashes = tonumber(fields.failures) or 0, tonumber(fields.crashes) or 0
    crashes = crashes + tonumber(deliveries) - 1
    local id, payload = fields.id or entry, fields.payload or ''
    if kind ~= 'release' then
      failures = failures + 1
    end
    if kind == 'bury' or (kind == 'fail' and failures >= tonumber(ARGV[2])) then
      mq_bury_entry(stream, dead, mq_now(''), entry, id, payload, failures, crashes, reason)
      code = '3'
    else
      mq_again(stream, entry, id, payload, failures, crashes)
    end
  end
  codes[#codes + 1] = code
end
return table.concat(codes)
