-- name gives a bucket the name of its journal, unless it has one.
redis.call('HSETNX', records, 'journal', ARGV[1])
return { 'done' }
