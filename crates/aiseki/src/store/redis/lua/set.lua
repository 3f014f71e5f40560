#!lua flags=allow-oom
-- Notes a word about the store as a whole. A script, because a plain SET is refused when memory is
-- short, and without these words nobody would be seated then.
--
-- KEYS[1] NS:recorder, NS:seats, NS:seats:reading or NS:layout.
-- ARGV: the word; for how many ms it counts, or '' for good; 1 if one that is there stays.
-- Returns: 1 if it was noted.
if ARGV[3] == '1' and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 0 }
end
if ARGV[2] == '' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return { 1 }
