#!lua flags=no-writes,allow-oom
-- What an examination asks of the namespace as a whole.
--
-- KEYS[1] NS:matching:state; KEYS[2] NS:matching:queues; KEYS[3] NS:matching:policy; KEYS[4] NS:recorder;
-- KEYS[5] NS:seats; KEYS[6] NS:layout. ARGV: none.
-- Returns: the server's time in ms; its run id; the run whose seats were read back; the layout; the
-- policy of the last server that began; when a server last ticked; 1 if somebody can write rooms; how
-- many queues have people.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
return {
  now,
  run,
  redis.call('GET', KEYS[5]) or '',
  redis.call('GET', KEYS[6]) or '',
  redis.call('GET', KEYS[3]) or '',
  redis.call('HGET', KEYS[1], 'tended') or '',
  redis.call('EXISTS', KEYS[4]),
  redis.call('SCARD', KEYS[2]),
}
