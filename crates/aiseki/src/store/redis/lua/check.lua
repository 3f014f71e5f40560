#!lua flags=allow-oom
-- What a server has to know of the Redis that it is told to use.
--
-- KEYS[1] NS:layout. ARGV: the version of the layout.
-- Returns: what INFO says of server, memory and replication; the version of the layout that is here.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
local info = redis.call('INFO', 'server')
  .. redis.call('INFO', 'memory')
  .. redis.call('INFO', 'replication')
return { info, redis.call('GET', KEYS[1]) }
