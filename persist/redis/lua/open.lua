-- open notes how the journal is laid out, unless that is known, and returns it.
redis.call('HSETNX', KEYS[1], 'format', ARGV[1])
redis.call('HSETNX', KEYS[1], 'buckets', ARGV[2])
return redis.call('HMGET', KEYS[1], 'format', 'buckets')
