#!lua flags=allow-oom
-- Counts a new session against the limit of its address.
--
-- KEYS[1] the bucket. ARGV: now in ms or ''; burst; period in ms.
-- Returns: 0, or in how many ms it may be tried again.
--@include now
--@part rate
local now = mq_now(ARGV[1])
local burst, per = tonumber(ARGV[2]), tonumber(ARGV[3])
local wait = rate_wait(KEYS[1], now, burst, per)
if wait == 0 then
  rate_count(KEYS[1], now, burst, per)
  rate_write()
end
return { string.format('%.0f', wait) }
