-- begin creates a record unless its id exists. token is that of this Begin, seen the highest
-- number that the caller has met; head has no number yet; journal is the name of the journal;
-- origin is the hash of the origin and that of the needs, reason why it is held.
local id, token, seen, head, intent, progress, body, answer, journal, origin, reason = unpack(ARGV)
if redis.call('HGET', records, 'journal') ~= journal then return { 'emptied' } end
local standing = read(id)
if standing then
  if standing.token == token and standing.revision == 1 then
    return { 'created', whole(standing.seq) } -- an earlier try of this Begin has landed
  end
  local parts = redis.call('HMGET', records, 'h' .. id, 'i' .. id, 'p' .. id, 'b' .. id, 'a' .. id)
  return { 'exists', unpack(parts) }
end

-- The number is higher than every other of this bucket, and than all that the caller knows of
-- other buckets. The time keeps the buckets close to each other; nothing depends on it.
local now = redis.call('TIME')
local seq = math.max(now[1] * 1000000 + now[2], (redis.call('GET', clock) or 0) + 1, seen + 1)
local r = parse(id, head)
r.seq = seq
redis.call('SET', clock, whole(seq))
redis.call('ZADD', all, seq, id)
redis.call('ZADD', names, 0, id)
redis.call('HSET', records, 'o' .. id, origin)
place(r, nil, nil, nil, reason)
redis.call('HSET', records, 'h' .. id, format(r), 'i' .. id, intent, 'p' .. id, progress)
if body ~= '' then redis.call('HSET', records, 'b' .. id, body) end
if answer ~= '' then redis.call('HSET', records, 'a' .. id, answer) end
return { 'created', whole(seq) }
