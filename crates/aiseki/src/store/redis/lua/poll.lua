#!lua flags=allow-oom
-- People ask for their state, which is a sign of life, and what rooms are possible on their topics
-- are formed.
--
-- KEYS: parts/lobby.lua.
-- ARGV: parts/lobby.lua; then sessions.
-- Returns: now, changes, and the state of each.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
--@part lobby
--@part seating
--@part finish
local settled = {}
for i = 4, #ARGV do
  local p = look(ARGV[i])
  if p.kind == 'waiting' then
    note_sign(ARGV[i], p, false)
    local topic = queue_of(p.queue).topic
    if not settled[topic] then
      settled[topic] = true
      settle(topic, ROOMS_PER_STEP)
    end
  end
end
local replies = {}
for i = 4, #ARGV do
  replies[#replies + 1] = state_of(ARGV[i])
end
finish()
return { whole(now), changes, replies }
