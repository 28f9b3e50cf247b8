-- change replaces what Begin has not frozen of the unfinished record that the caller read. It returns the end of its sends, of
-- which the later stays. needs is the hash of what the record needs from now on, or '' if that stays.
local id, seq, revision, head, progress, answer, ended, over, needs, reason, intent = unpack(ARGV)
local standing = read(id)
if not standing then return { 'gone' } end
local r = parse(id, head)
if standing.seq == tonumber(seq) and standing.revision == r.revision and standing.token == r.token then
  return { 'done', standing.sendUntil } -- an earlier try of this call has landed
end
if standing.seq ~= tonumber(seq) or standing.revision ~= tonumber(revision) or standing.state >= 2 then
  return refuse(standing)
end
if standing.created ~= r.created or standing.fingerprint ~= r.fingerprint then return { 'identity' } end
r.seq = standing.seq
if later(standing.sendUntil, r.sendUntil) then r.sendUntil = standing.sendUntil end
r.flags = r.flags - r.flags % 2 + standing.flags % 2 -- whether its key is generated is frozen
redis.call('HSET', records, 'h' .. id, format(r), 'p' .. id, progress)
keep('a', id, answer)
if intent ~= '' then -- the request is gone
  redis.call('HSET', records, 'i' .. id, intent)
  redis.call('HDEL', records, 'b' .. id)
end
place(r, ended, over, needs, reason)
return { 'done', r.sendUntil }
