-- The group exists from the first use on, and again after a FLUSHALL.
local function mq_group(stream, state)
  if redis.call('EXISTS', stream) == 0 or redis.call('HEXISTS', state, 'group') == 0 then
    redis.pcall('XGROUP', 'CREATE', stream, 'mq', '0', 'MKSTREAM')
    redis.call('HSET', state, 'group', '1')
  end
end
