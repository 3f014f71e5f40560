#!lua flags=no-writes,allow-stale
-- What a server has to know of the Redis that it is told to use. It only reads, so that a replica
-- answers too, and can be refused for what it is.
--
-- KEYS[1] NS:layout. ARGV: none.
-- Returns: what INFO says of server, memory and replication; the version of the layout that is here,
--       or '' in a new namespace.
local info = redis.call('INFO', 'server')
  .. redis.call('INFO', 'memory')
  .. redis.call('INFO', 'replication')
return { info, redis.call('GET', KEYS[1]) or '' }
