-- A sliding window that all API processes share: lets calls in, no more than a limit in any span of time.
--
-- KEYS 1  penstock:{limits}:<name> (list: microseconds of the server's clock at which calls were let in, oldest first)
-- ARGV    limit, length of the window in microseconds, calls to let in (0 only looks)
-- Answers 1 if they were let in, how many are in the window now, microseconds since the oldest of them
local limit, window, amount = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local newest = tonumber(redis.call('LINDEX', KEYS[1], -1) or now)
if newest > now + window then
  redis.call('DEL', KEYS[1]) -- the clock was set back by more than a window: nobody waits for it to catch up
elseif newest > now then
  now = newest
end
local oldest = tonumber(redis.call('LINDEX', KEYS[1], 0) or now)
while oldest < now - window do
  redis.call('LPOP', KEYS[1])
  oldest = tonumber(redis.call('LINDEX', KEYS[1], 0) or now)
end
local count = redis.call('LLEN', KEYS[1])
if count + amount > limit then
  return {0, count, now - oldest}
end
for _ = 1, amount do
  redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
end
if amount > 0 then
  redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000) + 1000)
end
return {1, count + amount, now - oldest}
