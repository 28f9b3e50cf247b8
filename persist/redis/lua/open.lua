-- open notes how the journal is laid out, what it is called and its secret, unless that is known, and returns
-- it with whether all buckets bear that name. It changes nothing of a journal of another format.
redis.call('HSETNX', KEYS[1], 'format', ARGV[1])
if redis.call('HGET', KEYS[1], 'format') == ARGV[1] then
  redis.call('HSETNX', KEYS[1], 'buckets', ARGV[2])
  redis.call('HSETNX', KEYS[1], 'id', ARGV[3])
  redis.call('HSETNX', KEYS[1], 'secret', ARGV[4])
end
return redis.call('HMGET', KEYS[1], 'format', 'buckets', 'id', 'named', 'secret')
