-- Every script begins with this. KEYS are the keys of one bucket, in the order of indexes in bucket.go.
local records, clock, all, names, unfinished, due, unresolved, fingerprints, finished, expiring, tombstones, unreported = unpack(KEYS)

-- The parts of a record are fields of one hash: a letter, and the record's id. 'h' is the head,
-- which is all that scripts read; it is laid out as in entry.go. The owner of the lease follows.
local layout = '>I8I8c16BBi8I4c12c32i8I4'
local generatedFlag, unreportedFlag, sweptFlag = 1, 2, 4

local function parse(id, head)
  local r, at = { id = id }
  r.seq, r.revision, r.token, r.state, r.flags, r.next, r.nextNano, r.created, r.fingerprint, r.leaseUntil, r.leaseNano, at =
    struct.unpack(layout, head)
  r.owner = string.sub(head, at)
  return r
end

local function format(r)
  return struct.pack(layout, r.seq, r.revision, r.token, r.state, r.flags, r.next, r.nextNano, r.created, r.fingerprint,
    r.leaseUntil, r.leaseNano) .. r.owner
end

local function read(id)
  local head = redis.call('HGET', records, 'h' .. id)
  return head and parse(id, head)
end

-- has reports whether one of the flags is set, which are powers of two.
local function has(r, flag)
  return math.floor(r.flags / flag) % 2 == 1
end

local function whole(number)
  return string.format('%.0f', number)
end

-- list puts the record into a sorted set if it belongs there, and takes it out if not.
local function list(set, belongs, score, member)
  if belongs then
    redis.call('ZADD', set, score, member)
  else
    redis.call('ZREM', set, member)
  end
end

-- waits enters a pending record into due: by when it may be claimed, in microseconds.
local function waits(r)
  local from = r.next * 1000000 + math.floor(r.nextNano / 1000)
  if r.owner ~= '' then
    from = math.max(from, r.leaseUntil * 1000000 + math.floor(r.leaseNano / 1000))
  end
  redis.call('ZADD', due, from, r.id)
end

-- lease gives a pending record to an owner until a time.
local function lease(r, owner, till, tillNano)
  r.owner, r.leaseUntil, r.leaseNano = owner, till, tillNano
  redis.call('HSET', records, 'h' .. r.id, format(r))
  waits(r)
end

-- place enters a record into the indexes that change with it. ended is when it was finished,
-- over when its window ends after that, in microseconds; both are '' as long as it is open.
local function place(r, ended, over)
  local open = r.state < 2
  local swept = has(r, sweptFlag)
  local mine = has(r, generatedFlag)
  local told = not has(r, unreportedFlag)
  list(unfinished, open, r.seq, r.id)
  if r.state == 0 then
    waits(r)
  else
    redis.call('ZREM', due, r.id)
  end
  if mine then
    list(unresolved, open or not told, r.seq, r.id)
    list(fingerprints, open or not told, 0, r.fingerprint .. r.id)
  end
  if not open then
    list(finished, not swept, ended, r.id)
    list(expiring, not swept, over, r.id)
    list(tombstones, swept and not mine, ended, r.id)
    list(unreported, swept and mine, told and 0 or over, r.id)
  end
end

-- remove takes a record out of everything.
local function remove(r)
  redis.call('HDEL', records, 'h' .. r.id, 'i' .. r.id, 'p' .. r.id, 'b' .. r.id, 'a' .. r.id)
  for _, set in ipairs({ all, names, unfinished, due, unresolved, finished, expiring, tombstones, unreported }) do
    redis.call('ZREM', set, r.id)
  end
  redis.call('ZREM', fingerprints, r.fingerprint .. r.id)
end

-- keep writes a part that may be absent.
local function keep(part, id, value)
  if value == '' then
    redis.call('HDEL', records, part .. id)
  else
    redis.call('HSET', records, part .. id, value)
  end
end

-- refuse says what a caller meets who has read another revision than the one that stands.
local function refuse(r)
  return { 'stale', r.state, whole(r.revision), whole(r.seq) }
end

