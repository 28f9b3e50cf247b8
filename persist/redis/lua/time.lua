-- time is the journal's clock, that of the node which has this bucket, and the name of the journal.
local now = redis.call('TIME')
return { 'done', now[1], now[2], redis.call('HGET', records, 'journal') }
