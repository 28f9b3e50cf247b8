-- assign gives the record that the caller read to another account: it stands under another id of the same bucket then, with
-- its number.
local id, newID, seq, revision, head, intent, progress, body, answer, ended, over, needs, reason = unpack(ARGV)
local r = parse(newID, head)
local there = read(newID)
if there then
  if there.token == r.token then return { 'done' } end -- an earlier try of this call has landed
  return { 'exists' }
end
local standing = read(id)
if not standing then return { 'gone' } end
if standing.seq ~= tonumber(seq) or standing.revision ~= tonumber(revision) then return refuse(standing) end
if standing.created ~= r.created or standing.fingerprint ~= r.fingerprint then return { 'identity' } end
local origin = redis.call('HGET', records, 'o' .. id)
remove(standing)
r.seq = standing.seq
redis.call('ZADD', all, r.seq, newID)
redis.call('ZADD', names, 0, newID)
if origin then redis.call('HSET', records, 'o' .. newID, string.sub(origin, 1, 12) .. needs) end
redis.call('HSET', records, 'h' .. newID, format(r), 'i' .. newID, intent, 'p' .. newID, progress)
keep('b', newID, body)
keep('a', newID, answer)
place(r, ended, over, nil, reason)
return { 'done' }
