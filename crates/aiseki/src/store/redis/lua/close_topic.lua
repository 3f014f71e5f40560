#!lua flags=allow-oom
-- Takes people out who wait for a topic, a bounded number.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; [4] how many people, at most; then the topic's queues.
-- Returns: now, changes, and 1 if somebody may be left for another step.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part leaving
--@part finish
local left = tonumber(ARGV[4])
for i = 5, #ARGV do
  if left > 0 then
    local sessions = redis.call('ZRANGE', queue_of(ARGV[i]).key, 0, left - 1)
    left = left - #sessions
    for _, session in ipairs(sessions) do
      local p = load(session)
      if p.kind == 'waiting' and p.queue == ARGV[i] then
        drop(session, p, 'topic_closed')
      else
        remove_from_queue(ARGV[i], session)
      end
    end
  end
end
local topic = #ARGV > 4 and queue_of(ARGV[5]).topic
for _, text in ipairs(redis.call('HVALS', KEYS[5])) do
  local room, of = string.match(text, '^%S+ (%S+) (%S+)')
  if of == topic then
    for _, session in ipairs(people_of(text)) do
      local p = load(session)
      if p.kind == 'reserved' and p.room == room then
        leave(session, p, 'topic_closed')
      end
    end
  end
end
finish()
return { whole(now), changes, left <= 0 and 1 or 0 }
