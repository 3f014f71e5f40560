#!lua
-- Publishes messages, all or (when the bound would be passed) none of them.
--
-- KEYS: the fourteen keys of the shard (parts/keys.lua).
-- ARGV: now in ms or ''; bound of the length or 0; then for each message: id, delay in ms,
--       unique key or '', payload.
-- Returns false when full. Otherwise: one digit for each message (1 accepted, 2 the id is known,
--       3 the unique key is taken), then the ids that hold the taken keys.
--
-- The one script that a server without free memory refuses: it makes the queue longer.
--@include keys
--@include now
--@include ring
--@include large
--@include publish
local messages = {}
for i = 3, #ARGV do
  messages[i - 2] = ARGV[i]
end
local codes, holders = mq_publish(mq_keys(1), mq_now(ARGV[1]), tonumber(ARGV[2]), messages)
if not codes then
  return false
end
return { codes, unpack(holders) }
