-- fact returns the fact of a journal whose id is ARGV[1] and whose name is ARGV[2], after it has written the value ARGV[4] where ARGV[3]
-- stands, or where nothing stands and that is empty. Without ARGV[4] it only reads.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then
  return { 'gone' }
end
local field = 'fact:' .. ARGV[2]
local standing = redis.call('HGET', KEYS[1], field) or ''
if #ARGV == 4 and standing == ARGV[3] then
  redis.call('HSET', KEYS[1], field, ARGV[4])
  standing = ARGV[4]
end
return { 'fact', standing }
