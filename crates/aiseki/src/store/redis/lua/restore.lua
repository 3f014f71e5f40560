#!lua flags=allow-oom
-- Gives people the seats that they hold in the database, after Redis has lost something. A wait that
-- is still here ends with it.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; then for each: session, room, topic, size, requested room type, when the
--       room was formed.
-- Returns: now, changes.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part finish
for i = 4, #ARGV, 6 do
  local session, room = ARGV[i], ARGV[i + 1]
  local p = load(session)
  if not (p.kind == 'seated' and p.room == room) then
    if p.kind == 'waiting' then
      remove_from_queue(p.queue, session)
    end
    local key = P .. 'room:' .. session
    redis.call('UNLINK', P .. 'waiting:' .. session, key)
    redis.call(
      'HSET', key,
      'room', room, 'topic', ARGV[i + 2], 'size', ARGV[i + 3], 'requested', ARGV[i + 4],
      'at', ARGV[i + 5]
    )
    people[session] = { kind = 'seated', room = room, seat = { unpack(ARGV, i + 1, i + 5) } }
    told[#told + 1] = session
    tell('seated', room, session)
  end
end
finish()
return { whole(now), changes }
