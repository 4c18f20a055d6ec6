-- Leases that still run. KEYS: the places. ARGV: how long a lease lasts (µs), the leases.
local time = redis.call('TIME')
local now = (tonumber(time[1]) - 1735689600) * 1000000 + tonumber(time[2])
local lasts = tonumber(ARGV[1])
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + lasts), ARGV[i])
end
redis.call('PEXPIRE', KEYS[1], math.ceil(lasts / 1000))
return #ARGV - 1
