-- Every script begins with this. KEYS are the keys of one bucket, in the order of indexes in bucket.go.
local records, clock, all, names, unfinished, due, unresolved, fingerprints, finished, expiring, tombstones, unreported, origins, owed, counts, ages = unpack(KEYS)

-- The parts of a record are fields of one hash: a letter, and the record's id. 'h' is the head; it is laid out as in
-- entry.go, and the owner of the lease follows. 'o' is the record's place in origins without the id, and 'w' why it is held. Scripts read no others.
local layout = '>I8I8c16BBBi8I4c12c32i8I4c12c12I4'
local generatedFlag, unreportedFlag, sweptFlag, owedFlag, usedFlag = 1, 2, 4, 8, 16

local function parse(id, head)
  -- The head of a used key ends after the format. What it lacks is zero.
  if math.floor((string.byte(head, 34) or 0) / usedFlag) % 2 == 1 then head = string.sub(head, 1, 35) .. string.rep('\0', 96) end
  local r, at = { id = id }
  r.seq, r.revision, r.token, r.state, r.flags, r.format, r.next, r.nextNano, r.created, r.fingerprint, r.leaseUntil, r.leaseNano, r.sendUntil, r.deserted, r.drives, at =
    struct.unpack(layout, head)
  r.owner = string.sub(head, at)
  return r
end

local function format(r)
  return struct.pack(layout, r.seq, r.revision, r.token, r.state, r.flags, r.format, r.next, r.nextNano, r.created, r.fingerprint,
    r.leaseUntil, r.leaseNano, r.sendUntil, r.deserted, r.drives) .. r.owner
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

-- instant is a time as members of origins have it. Their order is that of the times from the year 1 on.
local function instant(sec, nano)
  return struct.pack('>I8I4', math.min(math.max(sec + 62135596800, 0), 2 ^ 53), nano)
end

-- later reports whether a time is after another, both as instant has them. To compare them as strings would follow the locale.
local function later(a, b)
  local sec, nano = struct.unpack('>I8I4', a)
  local otherSec, otherNano = struct.unpack('>I8I4', b)
  return sec > otherSec or sec == otherSec and nano > otherNano
end

-- turn is the place of a record in origins without its id. origin is the hashes of its origin and of its needs, or anything that begins with them.
local function turn(r, origin)
  local group = string.sub(origin, 1, 20) .. string.sub(r.id, 21)
  if r.owner ~= '' then return group .. 'l' .. instant(r.leaseUntil, r.leaseNano) end
  return group .. 'f' .. instant(r.next, r.nextNano)
end

-- queue enters a record into origins if it is pending, and takes it out if not. One that has ended has no place. needs is the hash of its
-- needs, or '' if they are as they were.
local function queue(r, needs)
  local old = redis.call('HGET', records, 'o' .. r.id)
  if not old then return end
  redis.call('ZREM', origins, old .. r.id)
  if r.state >= 2 then
    redis.call('HDEL', records, 'o' .. r.id)
    return
  end
  if needs and needs ~= '' then old = string.sub(old, 1, 12) .. needs end
  local new = turn(r, old)
  redis.call('HSET', records, 'o' .. r.id, new)
  if r.state == 0 then redis.call('ZADD', origins, 0, new .. r.id) end
end

-- waits enters a pending record into due: by when it may be claimed, in microseconds.
local function waits(r)
  local from = r.next * 1000000 + math.floor(r.nextNano / 1000)
  if r.owner ~= '' then
    from = math.max(from, r.leaseUntil * 1000000 + math.floor(r.leaseNano / 1000))
  end
  redis.call('ZADD', due, from, r.id)
end

-- lasts reports whether a record is leased at a time.
local function lasts(r, now, nowNano)
  return r.owner ~= '' and (r.leaseUntil > now or r.leaseUntil == now and r.leaseNano > nowNano)
end

-- lease gives a pending record to an owner until a time.
local function lease(r, owner, till, tillNano)
  r.owner, r.leaseUntil, r.leaseNano = owner, till, tillNano
  redis.call('HSET', records, 'h' .. r.id, format(r))
  waits(r)
  queue(r)
end

-- add changes a number in counts. One of zero is not there.
local function add(field, n)
  if field and redis.call('HINCRBY', counts, field, n) == 0 then redis.call('HDEL', counts, field) end
end

-- tally counts a record as it is from now on. It is called before the record leaves due, or enters it. reason is why it is held, or nil
-- if that stays.
local function tally(r, reason)
  local why = redis.call('HGET', records, 'w' .. r.id)
  local before = why and 'h' .. why or redis.call('ZSCORE', due, r.id) and 'p'
  local now = r.state == 0 and 'p' or r.state == 1 and 'h' .. (reason or why)
  if before ~= now then
    add(before, -1)
    add(now, 1)
    if r.state == 1 then
      redis.call('HSET', records, 'w' .. r.id, string.sub(now, 2))
    else
      redis.call('HDEL', records, 'w' .. r.id)
    end
  end
  list(ages, r.state < 2, 0, instant(struct.unpack('>i8I4', r.created)) .. r.id)
end

-- place enters a record into the indexes that change with it. ended is when it was finished,
-- over when a sweep may change it, in microseconds; both are '' as long as it is open. needs is as for queue, and reason as for tally.
local function place(r, ended, over, needs, reason)
  local open = r.state < 2
  local swept = has(r, sweptFlag)
  local mine = has(r, generatedFlag)
  local told = not has(r, unreportedFlag)
  list(unfinished, open, r.seq, r.id)
  tally(r, reason)
  if r.state == 0 then
    waits(r)
  else
    redis.call('ZREM', due, r.id)
  end
  queue(r, needs)
  list(owed, has(r, owedFlag), r.seq, r.id)
  if mine then
    list(unresolved, open or not told, r.seq, r.id)
    list(fingerprints, open or not told, 0, r.fingerprint .. r.id)
  end
  if not open then
    list(finished, not swept, ended, r.id)
    list(expiring, not swept, over, r.id)
    list(tombstones, swept and not mine, over, r.id)
    list(unreported, swept and mine, told and 0 or over, r.id)
  end
end

-- remove takes a record out of everything.
local function remove(r)
  tally({ id = r.id, state = 2, created = r.created })
  local place = redis.call('HGET', records, 'o' .. r.id)
  if place then redis.call('ZREM', origins, place .. r.id) end
  redis.call('HDEL', records, 'h' .. r.id, 'i' .. r.id, 'p' .. r.id, 'b' .. r.id, 'a' .. r.id, 'o' .. r.id)
  for _, set in ipairs({ all, names, unfinished, due, unresolved, finished, expiring, tombstones, unreported, owed }) do
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

