-- The generic cell rate algorithm: a bucket is known by the moment at which it will be empty again,
-- in ms and fractions. The rule is that of `RateLimiter`.
local buckets = {}

-- How long until an attempt is let through; 0 for now.
local function rate_wait(key, at, burst, per)
  local empty_at = buckets[key] or tonumber(redis.call('GET', key) or '0')
  buckets[key] = math.max(empty_at, at)
  -- A hair is forgiven, for what is lost where a period does not divide evenly.
  return math.max(0, math.ceil(buckets[key] + per / burst - at - per - 0.001))
end

local function rate_count(key, at, burst, per)
  buckets[key] = buckets[key] + per / burst
  local text = string.format('%.6f', buckets[key])
  redis.call('SET', key, text, 'PX', string.format('%.0f', math.ceil(buckets[key] - at)))
end
