-- The server's time in ms; a test may pass its own, and then nothing else is used.
local function mq_now(given)
  if given ~= '' then
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
