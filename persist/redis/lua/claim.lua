-- claim leases records that are as the caller read them and that nobody has. The first five
-- arguments are the time, the owner and the end of the lease; then there are three for each
-- record: id, seq, revision. It returns which it has taken, counted from 0.
local now, nowNano, owner, till, tillNano = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local taken = { 'done' }
for at = 6, #ARGV, 3 do
  local id, seq, revision = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local r = read(id)
  if r and r.seq == seq and r.state == 0 then
    -- It may be ours already, by an earlier try of this call.
    local ours = r.revision == revision + 1 and r.owner == owner and r.leaseUntil == till and r.leaseNano == tillNano
    if r.revision == revision and not lasts(r, now, nowNano) then
      r.revision = revision + 1
      r.drives = r.drives + 1
      -- A process that lost its lease may be frozen, with a send on its way.
      if r.owner ~= '' and r.owner ~= owner and later(r.sendUntil, r.deserted) then r.deserted = r.sendUntil end
      lease(r, owner, till, tillNano)
      ours = true
    end
    if ours then taken[#taken + 1] = (at - 6) / 3 end
  end
end
return taken
