-- sweep makes tombstones of records, or removes them, if they are as the caller read them.
-- For each there are eight arguments: id, seq, revision, and what the tombstone is made of; an empty
-- head removes the record. It returns how many it has changed.
local changed = 0
for at = 1, #ARGV, 8 do
  local id, seq, revision, head, intent, progress, ended, over = unpack(ARGV, at, at + 7)
  local standing = read(id)
  if standing and standing.seq == tonumber(seq) and standing.revision == tonumber(revision) then
    if head == '' then
      remove(standing)
    else
      local r = parse(id, head)
      redis.call('HSET', records, 'h' .. id, head, 'i' .. id, intent, 'p' .. id, progress)
      redis.call('HDEL', records, 'b' .. id, 'a' .. id)
      place(r, ended, over)
      if has(standing, generatedFlag) and not has(r, generatedFlag) then -- the key counts as chosen from now on
        redis.call('ZREM', unresolved, id)
        redis.call('ZREM', fingerprints, r.fingerprint .. id)
      end
    end
    changed = changed + 1
  end
end
return { 'done', changed }
