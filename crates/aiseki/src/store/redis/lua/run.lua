#!lua flags=allow-oom
-- Which run of the server this is, and which one has the live seats of the database.
--
-- KEYS[1] NS:seats. ARGV: none.
-- Returns: the run id, and the one whose seats were read back.
local info = redis.call('INFO', 'server')
return { string.match(info, 'run_id:(%x+)') or '', redis.call('GET', KEYS[1]) or '' }
