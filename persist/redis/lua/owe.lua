-- owe replaces the head and the progress of the record whose result is owed at this revision. It says whether it has.
local id, seq, revision, head, progress, ended, over = unpack(ARGV)
local standing = read(id)
if not standing then return { 'gone' } end
local r = parse(id, head)
if standing.seq == tonumber(seq) and standing.revision == r.revision and standing.token == r.token then
  return { 'done' } -- an earlier try of this call has landed
end
if standing.seq ~= tonumber(seq) or standing.revision ~= tonumber(revision) or not has(standing, owedFlag) then
  return refuse(standing)
end
redis.call('HSET', records, 'h' .. id, head, 'p' .. id, progress)
place(r, ended, over, '')
return { 'done' }
