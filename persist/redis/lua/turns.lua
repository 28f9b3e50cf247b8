-- turns looks for the first pending record of each origin, needs and account that nobody has, and for all whose lease has ended.
-- The first three arguments are the time, and the hash of the origin to look at, with that of the needs or without, or '' for all; the others are ids to pass
-- over. It returns for each record its place, with its id, and its NextAttempt.
local now, nowNano, origin, over = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], {}
for at = 4, #ARGV do over[ARGV[at]] = true end
local found = { 'done' }
local from = '[' .. origin
while true do
  local place = redis.call('ZRANGEBYLEX', origins, from, '+', 'LIMIT', 0, 1)[1]
  if not place or string.sub(place, 1, #origin) ~= origin then return found end
  local group, leased, id = string.sub(place, 1, 32), string.sub(place, 33, 33) == 'l', string.sub(place, 46)
  local intact, r = pcall(read, id)
  if over[id] or not intact or not r then
    from = '(' .. place
  elseif leased and lasts(r, now, nowNano) then
    from = '(' .. group .. 'm' -- and so do those that follow
  else
    for _, part in ipairs({ place, whole(r.next), whole(r.nextNano) }) do found[#found + 1] = part end
    from = leased and '(' .. place or '[' .. group .. 'l'
  end
end
