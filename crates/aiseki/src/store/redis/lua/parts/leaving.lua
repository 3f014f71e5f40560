-- Somebody held for a room is to be idle for `reason` should it be undone. A ban outlives other
-- reasons. Needs parts/lobby.lua.
local function leave(session, p, reason)
  if p.leaving ~= 'banned' then
    p.leaving = reason
    redis.call('HSET', P .. 'waiting:' .. session, 'leaving', reason)
  end
end
