-- report clears the mark that nobody was told how the operation ended.
local id = ARGV[1]
local r = read(id)
if r and has(r, unreportedFlag) then
  r.flags = r.flags - unreportedFlag
  r.revision = r.revision + 1
  redis.call('HSET', records, 'h' .. id, format(r))
  redis.call('ZREM', unresolved, id)
  redis.call('ZREM', fingerprints, r.fingerprint .. id)
  if has(r, sweptFlag) then redis.call('ZADD', unreported, 0, id) end -- it may go with the next sweep
end
return { 'done' }
