-- What a step leaves behind. Needs parts/lobby.lua.

-- The state of somebody, as a list of words.
local function state_of(session)
  local p = load(session)
  if p.kind == 'waiting' then
    local reason = over(p)
    if reason then
      return { 'idle', reason }
    end
    local rank = redis.call('ZRANK', queue_of(p.queue).key, session) or 0
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

-- Writes what was collected: counters, formed rooms, topics to look at, the announcement.
local function finish()
  if ticket ~= tonumber(counters[1] or '0') or #rooms > 0 then
    redis.call(
      'HSET', KEYS[1],
      'ticket', whole(ticket), 'latest', string.format('%.12f', latest), 'room', whole(last_room)
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
