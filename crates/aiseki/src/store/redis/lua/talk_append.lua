#!lua
-- Somebody says something: it is numbered and appended in one step. A repeated id is said once.
--
-- KEYS[1] NS:matching:state. ARGV: now in ms or ''; room; session; the client's id; text; the limit:
--       burst (0: none) and period in ms.
-- Returns: `said` and the number, `repeated` and the number of the first, `limited` and in how many ms
--       it may be tried again, `not_seated`.
--@include now
--@part talk
local now, room, session, id, text = mq_now(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local burst, per = tonumber(ARGV[6]), tonumber(ARGV[7])
local key = talk_key(room)
local seats, last, hash = talk_seats(room)
local seat = talk_seat_of(seats, last, session)
if not seat then
  return { 'not_seated' }
end
local name = seat .. ':' .. id
local known = redis.call('HGET', key .. ':ids', name)
if known then
  return { 'repeated', known }
end
local fields = {}
if burst > 0 then
  local empty_at = math.max(tonumber(hash['limit' .. seat] or '0'), now)
  local wait = math.ceil(empty_at + per / burst - now - per - 0.001)
  if wait > 0 then
    return { 'limited', string.format('%.0f', wait) }
  end
  fields = { 'limit' .. seat, string.format('%.6f', empty_at + per / burst) }
end
local seq = string.format('%.0f', tonumber(hash.seq or '0') + 1)
local at = string.format('%.0f', math.max(now, tonumber(hash.at or '0')))
redis.call('HSET', key, 'seq', seq, 'at', at, unpack(fields))
redis.call('HSET', key .. ':ids', name, seq)
redis.call('XADD', key .. ':log', seq .. '-0', 'seat', seat, 'at', at, 'id', id, 'text', text)
redis.call(
  'SPUBLISH', TALK .. 'rooms',
  table.concat({ 's', room, seq, seat, at, #id, '' }, ' ') .. id .. text
)
return { 'said', seq }
