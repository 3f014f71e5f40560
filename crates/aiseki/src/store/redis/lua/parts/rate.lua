-- The generic cell rate algorithm: a bucket is known by the moment at which it will be empty again,
-- in ms and fractions. The rule is that of `RateLimiter`.
local buckets, counted = {}, {}

-- How long until an attempt is let through; 0 for now.
local function rate_wait(key, at, burst, per)
  local empty_at = buckets[key] or tonumber(redis.call('GET', key) or '0')
  buckets[key] = math.max(empty_at, at)
  -- A hair is forgiven, for what is lost where a period does not divide evenly.
  return math.max(0, math.ceil(buckets[key] + per / burst - at - per - 0.001))
end

local function rate_count(key, at, burst, per)
  buckets[key] = buckets[key] + per / burst
  counted[key] = math.ceil(buckets[key] - at)
end

-- Reads many buckets at once that will be asked for.
local function rate_read(keys)
  for i, empty_at in ipairs(redis.call('MGET', unpack(keys))) do
    buckets[keys[i]] = tonumber(empty_at or '0')
  end
end

-- Writes what was counted.
local function rate_write()
  for key, lifetime in pairs(counted) do
    local empty_at = buckets[key]
    local text = string.format(empty_at % 1 == 0 and '%d' or '%.6f', empty_at)
    redis.call('SET', key, text, 'PX', string.format('%d', lifetime))
  end
end
