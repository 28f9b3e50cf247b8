-- raise keeps records that are begun from now on above a number that was listed.
if tonumber(ARGV[1]) > tonumber(redis.call('GET', clock) or 0) then
  redis.call('SET', clock, ARGV[1])
end
return { 'done' }
