#!lua flags=allow-oom
-- Acquires the lease of a partition, unless another owner's is still running.
--
-- KEYS 1  penstock:{p}:lease (hash); all other keys of the partition are named after it
-- ARGV    owner, new token, milliseconds for which the lease runs
-- Reads   the types of inbox, wake, events, queues, ranks, held, active, timers, outbox
-- Writes  lease: owner, token, expires, term
-- Answers commit number, position, id of the store that the partition was built for ('' if none),
--         commit number that the cold store has acknowledged;
--         nothing if another owner has the lease
-- Refuses with WRONGTYPE if a key of the partition belongs to something else
local base = string.sub(KEYS[1], 1, -6)
local types = {inbox = 'stream', wake = 'stream', events = 'stream', queues = 'set', ranks = 'set', held = 'set',
               active = 'set', timers = 'zset', outbox = 'list', lease = 'hash'}
for name, wanted in pairs(types) do
  local found = redis.call('TYPE', base .. name).ok
  if found ~= 'none' and found ~= wanted then
    return redis.error_reply('WRONGTYPE ' .. base .. name .. ' is a ' .. found .. ': this Redis is used by something else')
  end
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local lease = redis.call('HMGET', KEYS[1], 'owner', 'token', 'expires', 'n', 'position', 'built', 'term', 'cold')
-- a lease that would run longer than its term was acquired before the clock went back
local left = tonumber(lease[3] or '0') - now
if lease[2] and lease[1] ~= ARGV[1] and left > 0 and left <= tonumber(lease[7] or '0') then
  return false
end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'token', ARGV[2], 'expires', now + ARGV[3], 'term', ARGV[3])
return {lease[4] or '0', lease[5] or '0', lease[6] or '', lease[8] or '0'}
