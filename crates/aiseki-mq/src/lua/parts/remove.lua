-- Takes an entry out of the stream for good.
local function mq_remove(stream, entry)
  redis.call('XACK', stream, 'mq', entry)
  redis.call('XDEL', stream, entry)
end
