-- amend replaces what Begin has not frozen of the record that the caller read, which has ended. It ends so, or is held again then:
-- erased is its former fingerprint if everything of a person is taken out of it, or nil. origin is the hash of its origin and that of its needs, for its place among the open ones. The later end of sends stays.
local id, seq, revision, head, progress, answer, ended, over, needs, reason, intent, origin, erased = unpack(ARGV)
local standing = read(id)
if not standing then return { 'gone' } end
local r = parse(id, head)
if standing.seq == tonumber(seq) and standing.revision == r.revision and standing.token == r.token then
  return { 'done', standing.sendUntil } -- an earlier try of this call has landed
end
if standing.seq ~= tonumber(seq) or standing.revision ~= tonumber(revision) or standing.state < 2 then
  return refuse(standing)
end
if standing.created ~= r.created or standing.fingerprint ~= (erased or r.fingerprint) then return { 'identity' } end
r.seq = standing.seq
if erased and (has(standing, unreportedFlag) or has(standing, owedFlag)) then return { 'identity' } end
if later(standing.sendUntil, r.sendUntil) then r.sendUntil = standing.sendUntil end
r.flags = r.flags - r.flags % 2 + standing.flags % 2 -- whether its key is generated is frozen
if r.state < 2 then
  for _, set in ipairs({ finished, expiring, tombstones, unreported }) do redis.call('ZREM', set, id) end
  redis.call('HSET', records, 'o' .. id, origin)
end
redis.call('HSET', records, 'h' .. id, format(r), 'p' .. id, progress)
keep('a', id, answer)
if intent ~= '' then -- the request is gone
  redis.call('HSET', records, 'i' .. id, intent)
  redis.call('HDEL', records, 'b' .. id)
end
place(r, ended, over, needs, reason)
return { 'done', r.sendUntil }
