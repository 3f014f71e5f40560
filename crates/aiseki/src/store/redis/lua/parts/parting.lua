-- What is noted of people who have shared a room. Needs parts/lobby.lua.
local PARTED_SWEEP, PARTED_LIMIT = 64, 1024

-- Forgets who may be met again, and of very many others those from whom somebody parted first.
local function forget_partings(key)
  local flat, known = redis.call('HGETALL', key), {}
  for i = 1, #flat, 2 do
    known[#known + 1] = { session = flat[i], at = tonumber(flat[i + 1]) }
  end
  table.sort(known, function(a, b)
    return a.at < b.at
  end)
  local forgotten, left = {}, #known
  for _, other in ipairs(known) do
    if left <= PARTED_LIMIT - PARTED_SWEEP and last_parted < other.at + policy.rematch_after then
      break
    end
    forgotten[#forgotten + 1] = other.session
    left = left - 1
  end
  if #forgotten > 0 then
    redis.call('HDEL', key, unpack(forgotten))
  end
end

local function note_parting(session, other)
  local key = P .. 'parted:' .. session
  redis.call('HSET', key, other, whole(now))
  if redis.call('HLEN', key) % PARTED_SWEEP == 0 then
    forget_partings(key)
  end
  if not virtual then
    redis.call('PEXPIRE', key, policy.rematch_after)
  end
end

-- The first of these two gave up the seat in a room in which both had one.
local function part(a, b)
  if policy.rematch_after > 0 then
    last_parted = math.max(last_parted, now)
    redis.call('HSET', KEYS[1], 'parted', whole(last_parted))
    note_parting(a, b)
    note_parting(b, a)
  end
end
