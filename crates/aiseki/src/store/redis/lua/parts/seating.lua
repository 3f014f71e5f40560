-- The choice of who is seated next, and their reservation. Needs parts/lobby.lua.

-- The people of a queue who can be seated now, oldest first, read as far as somebody asks.
local function line(queue)
  return { queue = queue, found = {}, read = 0 }
end

local function read_on(l)
  local chunk = l.read == 0 and 4 or LOOK_AHEAD
  chunk = math.min(chunk, SCAN_LIMIT - l.read)
  local key = queue_of(l.queue).key
  local arrivals = fresh[l.queue]
  -- Whoever entered in this step comes after all who stand in the queue.
  local standing = length(l.queue) - (arrivals and arrivals.waiting or 0)
  local entries = {}
  if standing > l.read then
    entries = redis.call('ZRANGE', key, l.read, l.read + chunk - 1)
  end
  l.read = l.read + #entries
  if arrivals and #entries < chunk then
    for _, session in ipairs(arrivals) do
      if people[session].kind == 'waiting' then
        entries[#entries + 1] = session
      end
    end
    l.done = true
  end
  l.done = l.done or #entries < chunk or l.read >= SCAN_LIMIT
  for _, session in ipairs(entries) do
    local p = load(session)
    if p.kind == 'waiting' and p.queue == l.queue then
      if p.held <= now and not over(p) then
        local ripe = fallback_at(p)
        l.found[#l.found + 1] = {
          session = session,
          place = p.place,
          since = p.since,
          ripe = ripe ~= nil and ripe <= now,
        }
      end
    else
      -- Whoever does not wait here has no place here.
      remove_from_queue(l.queue, session)
      l.read = l.read - 1
    end
  end
end

-- The nth of them, or nothing.
local function candidate(l, n)
  while #l.found < n and not l.done do
    read_on(l)
  end
  return n <= LOOK_AHEAD and l.found[n] or nil
end

local function all_candidates(l)
  local list = {}
  while true do
    local person = candidate(l, #list + 1)
    if not person then
      return list
    end
    list[#list + 1] = person
  end
end

local acquaintances = {}

-- Whom somebody is kept apart from, or nothing: those who parted, each with when, and whether there is
-- anybody whom they never meet.
local function acquaintances_of(session)
  local known = acquaintances[session]
  if known == nil then
    local blocks, parted = P .. 'blocks:' .. session, P .. 'parted:' .. session
    known = false
    if redis.call('EXISTS', blocks, parted) > 0 then
      known = { blocks = redis.call('EXISTS', blocks) == 1 and blocks, parted = {} }
      local flat = redis.call('HGETALL', parted)
      for i = 1, #flat, 2 do
        known.parted[flat[i]] = tonumber(flat[i + 1])
      end
    end
    acquaintances[session] = known
  end
  return known
end

-- Whether these two may share a room. Everything is kept for both of a pair, so only the first is
-- asked, once in a step, whether they know anybody: that is one question for each seat but the last,
-- and none for the people who come after.
local function may_sit_together(a, b)
  local known = acquaintances_of(a.session)
  if not known then
    return true
  elseif known.blocks and redis.call('SISMEMBER', known.blocks, b.session) == 1 then
    return false
  end
  local at = known.parted[b.session]
  -- What is over stays over when the clock steps back.
  return not at
    or math.max(now, last_parted) >= at + policy.rematch_after
    or now >= math.max(a.since, b.since) + REMATCH_WAIT
end

-- Completes `group` from the people at `first` and after, trying the oldest first and going back
-- where that leads nowhere.
local function complete(get, first, size, group, budget)
  if #group == size then
    return true
  end
  local i = first
  while true do
    local person = get(i)
    if not person or budget.left < #group then
      return false
    end
    budget.left = budget.left - #group
    local fits = true
    for _, other in ipairs(group) do
      fits = fits and may_sit_together(other, person)
    end
    if fits then
      group[#group + 1] = person
      if complete(get, i + 1, size, group, budget) then
        return true
      end
      group[#group] = nil
    end
    i = i + 1
  end
end

-- The first group of `size` people in order of arrival who may all sit together, its oldest
-- satisfying `may_open`.
local function oldest_group(get, size, may_open)
  local budget, i = { left = COMPARISONS }, 1
  while true do
    local person = get(i)
    if not person then
      return nil
    end
    if not may_open or may_open(person) then
      local group = { person }
      if complete(get, i + 1, size, group, budget) then
        return group
      end
    end
    i = i + 1
  end
end

local function is_ripe(person)
  return person.ripe
end

-- Whether somebody of a queue may accept a fallback by now. While the clock runs as it should, the
-- oldest is the first to.
local function may_be_ripe(queue)
  if not in_order then
    return true
  end
  local oldest = redis.call('ZRANGE', queue_of(queue).key, 0, 0, 'WITHSCORES')[2]
  if not oldest then
    return policy.fallback_after <= 0
  end
  return math.floor(tonumber(oldest)) + policy.fallback_after <= now
end

-- Chooses the next room of a topic: full rooms, then fallback, then merge.
local function choose(topic)
  -- The smallest room there is needs two people.
  local present = 0
  for _, room_type in ipairs(policy.types) do
    present = present + length(topic .. ':' .. room_type.size)
  end
  if present < 2 then
    return nil
  end
  local lines = {}
  local function get_from(queue)
    lines[queue] = lines[queue] or line(queue)
    return function(n)
      return candidate(lines[queue], n)
    end
  end
  for _, room_type in ipairs(policy.types) do
    local queue = topic .. ':' .. room_type.size
    if length(queue) >= room_type.size then
      local group = oldest_group(get_from(queue), room_type.size)
      if group then
        return 'full', group
      end
    end
  end
  for _, room_type in ipairs(policy.types) do
    local queue, size = topic .. ':' .. room_type.size, room_type.fallback
    if size > 0 and length(queue) >= size and may_be_ripe(queue) then
      local group = oldest_group(get_from(queue), size, is_ripe)
      if group then
        return 'fallback', group
      end
    end
  end
  if not policy.merge then
    return nil
  end
  local largest = 0
  for _, room_type in ipairs(policy.types) do
    largest = math.max(largest, room_type.fallback)
  end
  for size = 2, largest do
    local list = {}
    for _, room_type in ipairs(policy.types) do
      local queue = topic .. ':' .. room_type.size
      if room_type.fallback == size and length(queue) > 0 and may_be_ripe(queue) then
        get_from(queue)
        for _, person in ipairs(all_candidates(lines[queue])) do
          if person.ripe then
            list[#list + 1] = person
          end
        end
      end
    end
    local smaller = topic .. ':' .. size
    if #list > 0 and #list + length(smaller) >= size then
      get_from(smaller)
      for _, person in ipairs(all_candidates(lines[smaller])) do
        list[#list + 1] = person
      end
      table.sort(list, function(a, b)
        return a.place < b.place
      end)
      local group = oldest_group(function(n)
        return list[n]
      end, size)
      if group then
        return 'merge', group
      end
    end
  end
end

-- The id of a new room: a version 7 UUID from the time, a counter, and bits from the caller. It is
-- above every id before it, also within a millisecond and when the clock steps back.
local function new_room()
  last_room = math.max(now * 4096, last_room + 1)
  local ms = string.format('%012x', math.floor(last_room / 4096))
  return string.format(
    '%s-%s-7%03x-%s-%s',
    string.sub(ms, 1, 8), string.sub(ms, 9, 12), last_room % 4096,
    string.sub(ARGV[3], 1, 4), string.sub(ARGV[3], 5, 16)
  )
end

-- Takes a group from its queues for a room that is to be written.
local function reserve(topic, kind, group)
  local room = new_room()
  local text = { '1', room, topic, kind, whole(now) }
  local by_queue = {}
  local lapse = moment(now + policy.reservation_ttl)
  for _, person in ipairs(group) do
    local session = person.session
    local p = people[session]
    local requested = queue_of(p.queue).size
    p.kind, p.room, p.at, p.leaving = 'reserved', room, now, nil
    if p.fresh then
      p.alarm = math.min(p.alarm, lapse)
      lengths[p.queue] = length(p.queue) - 1
      fresh[p.queue].waiting = fresh[p.queue].waiting - 1
    else
      by_queue[p.queue] = by_queue[p.queue] or {}
      table.insert(by_queue[p.queue], session)
      if lapse < p.alarm then
        local alarm = set_alarm(session, p, lapse)
        redis.call('HSET', P .. 'waiting:' .. session, 'room', room, 'alarm', alarm)
      else
        redis.call('HSET', P .. 'waiting:' .. session, 'room', room)
      end
    end
    local seat = P .. 'room:' .. session
    redis.call(
      'HSET', seat,
      'room', room, 'topic', topic, 'size', #group, 'requested', requested, 'at', whole(now),
      'stood', stood_of(p)
    )
    if not virtual then
      redis.call('PEXPIRE', seat, policy.reservation_ttl)
    end
    local n = #text
    text[n + 1], text[n + 2], text[n + 3], text[n + 4] = session, whole(p.ticket), requested, whole(p.since)
  end
  for queue, sessions in pairs(by_queue) do
    remove_from_queue(queue, unpack(sessions))
  end
  rooms[#rooms + 1] = { room, table.concat(text, ' ') }
  tell('reserved', rooms[#rooms][2])
end

local recording

-- Forms the rooms that are possible on a topic, at most `limit`, and answers how many it formed.
-- While nobody can write rooms down, everybody keeps their place.
local function settle(topic, limit)
  if recording == nil then
    recording = redis.call('EXISTS', KEYS[6]) == 1
  end
  for formed = 0, limit - 1 do
    local kind, group = choose(topic)
    if not kind then
      return formed
    end
    if not recording then
      break
    end
    reserve(topic, kind, group)
    if formed == limit - 1 then
      unsettled[topic] = true
      return limit
    end
  end
  unsettled[topic] = true
  return 0
end
