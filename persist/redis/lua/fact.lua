-- fact returns the fact of a journal whose id is ARGV[1], in the field ARGV[2], after it has written the value ARGV[4] where ARGV[3]
-- stands, or where nothing stands and that is empty.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then
  return { 'gone' }
end
local standing = redis.call('HGET', KEYS[1], ARGV[2]) or ''
if standing == ARGV[3] then
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
  standing = ARGV[4]
end
return { 'fact', standing }
