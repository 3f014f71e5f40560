-- What a step leaves behind. Needs parts/lobby.lua.

-- The state of somebody, as a list of words.
local function state_of(session)
  local p = load(session)
  if p.kind == 'waiting' then
    local reason = over(p)
    if reason then
      return { 'idle', reason }
    end
    local rank
    if p.fresh then
      rank = length(p.queue) - 1
      local arrivals = fresh[p.queue]
      for i = #arrivals, 1, -1 do
        if arrivals[i] == session then
          break
        elseif people[arrivals[i]].kind == 'waiting' then
          rank = rank - 1
        end
      end
    else
      rank = redis.call('ZRANK', queue_of(p.queue).key, session) or 0
    end
    return { 'waiting', p.queue, whole(p.ticket), whole(p.since), whole(math.min(rank, 1000)) }
  elseif p.kind == 'reserved' then
    return { 'waiting', p.queue, whole(p.ticket), whole(p.since), '0' }
  elseif p.kind == 'seated' then
    return { 'matched', unpack(p.seat) }
  end
  local reason, at, offer = idle_of(session)
  if not reason then
    return { 'idle' }
  elseif not offer then
    return { 'idle', reason }
  end
  local room, queue, waited = string.match(offer, '^(%S+) (%S+) (%S+)')
  return { 'idle', reason, room, queue, waited, whole(at + REASON_KEPT) }
end

-- A new wait as it is written down.
local function wait_of(session, p)
  local wait = {
    'queue', p.queue, 'since', whole(p.since), 'nth', whole(p.nth), 'ticket', whole(p.ticket),
    'seen', whole(p.seen), 'alarm', set_alarm(session, p, p.alarm), 'address', p.address,
  }
  if p.place ~= p.ticket then
    local n = #wait
    wait[n + 1], wait[n + 2], wait[n + 3], wait[n + 4] = 'first', whole(p.first), 'place', whole(p.place)
  end
  return wait
end

-- Writes down who entered in this step.
local function write_arrivals()
  for queue, arrivals in pairs(fresh) do
    local entries = {}
    for _, session in ipairs(arrivals) do
      local p = people[session]
      p.fresh = nil
      local wait = wait_of(session, p)
      if p.kind == 'reserved' then
        wait[#wait + 1] = 'room'
        wait[#wait + 1] = p.room
      else
        entries[#entries + 1] = score_text(p.since, p.nth)
        entries[#entries + 1] = session
      end
      redis.call('HSET', P .. 'waiting:' .. session, unpack(wait))
    end
    if #entries > 0 then
      redis.call('ZADD', queue_of(queue).key, unpack(entries))
    end
  end
  fresh = {}
end

-- Notes which queues have people now and had none before, and the other way round.
local function write_queues()
  local some, none = {}, {}
  for queue, now_long in pairs(lengths) do
    if now_long > 0 and lengths_before[queue] <= 0 then
      some[#some + 1] = queue
    elseif now_long <= 0 and lengths_before[queue] > 0 then
      none[#none + 1] = queue
    end
  end
  if #some > 0 then
    redis.call('SADD', KEYS[2], unpack(some))
  end
  if #none > 0 then
    redis.call('SREM', KEYS[2], unpack(none))
  end
end

-- Writes what was collected: people, counters, formed rooms, topics to look at, the announcement.
local function finish()
  write_arrivals()
  write_alarms()
  write_queues()
  if ticket ~= tonumber(counters[1] or '0') or #rooms > 0 then
    redis.call(
      'HSET', KEYS[1],
      'ticket', whole(ticket), 'latest', score_text(math.floor(latest), latest % 1 * 4096),
      'room', whole(last_room)
    )
  end
  if #rooms > 0 then
    local fields, messages = {}, {}
    for _, room in ipairs(rooms) do
      fields[#fields + 1] = room[1]
      fields[#fields + 1] = room[2]
      messages[#messages + 1] = room[1]
      messages[#messages + 1] = '0'
      messages[#messages + 1] = ''
      messages[#messages + 1] = room[2]
    end
    redis.call('HSET', KEYS[5], unpack(fields))
    mq_publish(mq_keys(7), now, 0, messages)
  end
  for topic in pairs(unsettled) do
    redis.call('SADD', KEYS[3], topic)
  end
  if #told > 0 then
    local number = redis.call('HINCRBY', KEYS[1], 'announced', 1)
    local text = whole(number) .. ' ' .. table.concat(told, ' ')
    redis.call('SPUBLISH', P .. 'announcements', text)
  end
end
