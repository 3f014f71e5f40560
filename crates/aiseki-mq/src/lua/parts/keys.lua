-- The keys of one shard, in the order in which every script receives them.
-- `first` is the index in KEYS of the first of the fourteen.
local function mq_keys(first)
  return {
    state = KEYS[first], -- HASH: paused, fence, run, next, counters, last claims
    ready = KEYS[first + 1], -- LIST of ids: pushed at the left, taken at the right
    delayed = KEYS[first + 2], -- ZSET id -> due, in ms
    leased = KEYS[first + 3], -- ZSET id -> deadline, in ms
    payload = KEYS[first + 4], -- HASH id -> 13 digits of ms when published, a space, the payload
    meta = KEYS[first + 5], -- HASH id -> token:failures:crashes:last token:worker
    dead = KEYS[first + 6], -- ZSET id -> when it died, in ms
    reason = KEYS[first + 7], -- HASH id -> why it died
    unique = KEYS[first + 8], -- HASH unique key -> id of the live message that has it
    holds = KEYS[first + 9], -- HASH id -> its unique key
    done = KEYS[first + 10], -- HASH id -> token: messages acked lately
    past = KEYS[first + 11], -- HASH: the generation of `done` before
    cancelled = KEYS[first + 12], -- SET of ids that were cancelled and still stand in `ready`
    wake = KEYS[first + 13], -- LIST: at most one element, without data, to block on
  }
end
