-- renew lets an owner's leases last longer. The first three arguments are the owner and the end
-- of the lease; the others are ids. It returns which the owner has, counted from 0.
local owner, till, tillNano = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local held = { 'done' }
for at = 4, #ARGV do
  local r = read(ARGV[at])
  if r and r.state == 0 and r.owner == owner then
    lease(r, owner, till, tillNano)
    held[#held + 1] = at - 4
  end
end
return held
