-- index tells the origins of records that were begun by a program without the index origins. For each there are three
-- arguments: id, seq, and the hash of the origin.
for at = 1, #ARGV, 3 do
  local id, seq, origin = unpack(ARGV, at, at + 2)
  local r = read(id)
  if r and r.seq == tonumber(seq) and r.state < 2 then
    redis.call('HSETNX', records, 'o' .. id, origin)
    queue(r)
  end
end
return { 'done' }
