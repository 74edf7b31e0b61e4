#!lua flags=allow-oom
-- Records a worker's heartbeat; or forgets a worker that has left, or is dead and has no tasks.
--
-- KEYS 1  penstock:{fleet}:beats (hash: worker -> number of heartbeats)
-- ARGV    worker, what it serves (JSON); without the second argument it is forgotten
-- Writes  beats, and penstock:{fleet}:workers (hash: worker -> what it serves)
-- Answers 1
local workers = string.gsub(KEYS[1], 'beats$', 'workers')
if ARGV[2] then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('HSET', workers, ARGV[1], ARGV[2])
else
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('HDEL', workers, ARGV[1])
end
return 1
