#!lua flags=allow-oom
-- A worker lives; or it has left, or is dead and has nothing.
--
-- KEYS 1  penstock:{fleet}:beats (hash: worker -> how many heartbeats)
-- ARGV    worker, what it serves (JSON); without the second it is forgotten
-- Writes  penstock:{fleet}:workers (hash: worker -> what it serves) too
local workers = string.gsub(KEYS[1], 'beats$', 'workers')
if ARGV[2] then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('HSET', workers, ARGV[1], ARGV[2])
else
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('HDEL', workers, ARGV[1])
end
return 1
