-- forget removes the unfinished record that the caller read.
local id, seq, revision = unpack(ARGV)
local standing = read(id)
if not standing then return { 'gone' } end
if standing.seq ~= tonumber(seq) or standing.revision ~= tonumber(revision) or standing.state >= 2 then
  return refuse(standing)
end
remove(standing)
return { 'done' }
