-- sweep makes tombstones of records, drops their requests, or removes them, if they are as the caller read them.
-- For each there are nine arguments: id, seq, revision, what is left of it, and whether its answer stays; an empty
-- head removes the record. It returns how many it has changed.
local changed = 0
for at = 1, #ARGV, 9 do
  local id, seq, revision, head, intent, progress, ended, over, answer = unpack(ARGV, at, at + 8)
  local standing = read(id)
  if standing and standing.seq == tonumber(seq) and standing.revision == tonumber(revision) then
    if head == '' then
      remove(standing)
    else
      local r = parse(id, head)
      redis.call('HSET', records, 'h' .. id, head)
      keep('i', id, intent) -- a used key has a head alone
      keep('p', id, progress)
      redis.call('HDEL', records, 'b' .. id)
      if answer == '' then redis.call('HDEL', records, 'a' .. id) end
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
