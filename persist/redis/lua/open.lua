-- open notes how the journal is laid out and what it is called, unless that is known, and returns
-- it with whether all buckets bear that name.
redis.call('HSETNX', KEYS[1], 'format', ARGV[1])
redis.call('HSETNX', KEYS[1], 'buckets', ARGV[2])
redis.call('HSETNX', KEYS[1], 'id', ARGV[3])
return redis.call('HMGET', KEYS[1], 'format', 'buckets', 'id', 'named')
