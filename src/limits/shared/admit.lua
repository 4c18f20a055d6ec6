-- One admission: places among those at the same time, then buckets (GCRA), all or nothing.
-- KEYS: of each charge its bucket and its places. ARGV: the lease and how long it lasts (µs),
-- then of each charge the time in which one token comes (µs), the burst, the cap (0: none).
-- Answers {0, what is left in each bucket} or {the charge that refuses, µs to wait (-1: no place)}.
-- The only clock is the server's, counted from 2025 so that a double holds fractions of µs.
local time = redis.call('TIME')
local now = (tonumber(time[1]) - 1735689600) * 1000000 + tonumber(time[2])
local lease, lasts = ARGV[1], tonumber(ARGV[2])
local charges = #KEYS / 2

for i = 1, charges do
  local cap = tonumber(ARGV[3 * i + 2])
  if cap > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[2 * i], '-inf', string.format('%.0f', now))
    if redis.call('ZCARD', KEYS[2 * i]) >= cap then
      return { i, -1 }
    end
  end
end

local answer = { 0 }
local full_at = {}
for i = 1, charges do
  local one, burst = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  local stored = tonumber(redis.call('GET', KEYS[2 * i - 1]) or now)
  -- A clock that went back leaves an empty bucket, not one that is locked.
  local at = math.min(math.max(stored, now), now + one * burst)
  local room = now + one * burst - at
  if room + 0.02 < one then
    return { i, math.ceil(one - room) }
  end
  full_at[i] = at + one
  answer[i + 1] = math.max(0, math.floor((room - one) / one + 0.001))
end

for i = 1, charges do
  local lives = math.max(1, math.ceil((full_at[i] - now) / 1000))
  redis.call('SET', KEYS[2 * i - 1], string.format('%.3f', full_at[i]), 'PX', lives)
  if tonumber(ARGV[3 * i + 2]) > 0 then
    redis.call('ZADD', KEYS[2 * i], string.format('%.0f', now + lasts), lease)
    redis.call('PEXPIRE', KEYS[2 * i], math.ceil(lasts / 1000))
  end
end
return answer
