#!lua flags=allow-oom
-- Keeps people apart for ever. Nobody loses a place by it: who sits with whom is asked when a room is
-- formed.
--
-- KEYS[1] NS:matching:state, beside which blocks:SESSION is the SET of those whom that person never
--         meets, kept for both of a pair
-- ARGV: two people for each pair.
-- Returns how many pairs there were.
local P = string.sub(KEYS[1], 1, -6)
for i = 1, #ARGV, 2 do
  local a, b = ARGV[i], ARGV[i + 1]
  redis.call('SADD', P .. 'blocks:' .. a, b)
  redis.call('SADD', P .. 'blocks:' .. b, a)
end
return { #ARGV / 2 }
