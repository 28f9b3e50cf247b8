-- time is the journal's clock: that of the node which has this bucket.
local now = redis.call('TIME')
return { 'done', now[1], now[2] }
