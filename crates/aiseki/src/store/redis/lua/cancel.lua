#!lua flags=allow-oom
-- People stop waiting. For somebody for whom a room was formed first it is noted: should the room be
-- undone, they are idle.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; then sessions.
-- Returns: now, changes, and for each `cancelled`, or `taken` and the state.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part finish
local replies = {}
for i = 4, #ARGV do
  local session = ARGV[i]
  local p = look(session)
  if p.kind == 'waiting' then
    drop(session, p, 'left')
  elseif p.kind == 'reserved' and not p.leaving then
    p.leaving = 'left'
    redis.call('HSET', P .. 'waiting:' .. session, 'leaving', 'left')
  end
  if p.kind == 'reserved' or p.kind == 'seated' then
    replies[#replies + 1] = { 'taken', unpack(state_of(session)) }
  else
    replies[#replies + 1] = { 'cancelled' }
  end
end
finish()
return { whole(now), changes, replies }
