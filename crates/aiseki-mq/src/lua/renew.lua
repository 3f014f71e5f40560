#!lua flags=allow-oom
-- Moves the deadlines of leases that are still held.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: now in ms or ''; lease in ms; then for each: id, token.
-- Returns one digit each: 1 renewed, 0 lost.
--@include keys
--@include now
local q = mq_keys(1)
local deadline = string.format('%.0f', mq_now(ARGV[1]) + tonumber(ARGV[2]))
local codes, leases = {}, {}
for i = 3, #ARGV, 2 do
  local token = ARGV[i + 1]
  local meta = redis.call('HGET', q.meta, ARGV[i])
  if meta and string.sub(meta, 1, #token + 1) == token .. ':' then
    codes[#codes + 1] = '1'
    leases[#leases + 1] = deadline
    leases[#leases + 1] = ARGV[i]
  else
    codes[#codes + 1] = '0'
  end
end
if #leases > 0 then
  redis.call('ZADD', q.leased, unpack(leases))
end
return table.concat(codes)
