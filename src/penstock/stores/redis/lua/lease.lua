#!lua flags=allow-oom
-- Actions that need the lease of a partition.
--
-- KEYS 1  penstock:{p}:lease (hash); all other keys of the partition are named after it
-- ARGV    token, then one of
--         renew, milliseconds
--         release
--         acknowledge_outbox, entries to remove from the outbox, ids of archived executions…
--         acknowledge_copies, then execution id, how far it was copied to the cold store…
--         forget_copies
--         acknowledge_commit, commit number that the cold store has
--         wipe, keys to remove…
--         restore, then execution id, change…
--         built, store id, commit number
-- Writes  lease; acknowledge_outbox: outbox, execution:<id>, copied; acknowledge_copies,
--         forget_copies: copied (read.lua); restore: execution:<id>, active, copied
-- Answers 1; 0 if another owner has the lease and the action is renew or release
-- Refuses with FENCED all other actions if another owner has the lease
local lease, base = KEYS[1], string.sub(KEYS[1], 1, -6)
local what = ARGV[2]
if redis.call('HGET', lease, 'token') ~= ARGV[1] then
  if what == 'renew' or what == 'release' then
    return 0
  end
  return redis.error_reply('FENCED the partition belongs to another owner now')
end
if what == 'renew' then
  local clock = redis.call('TIME')
  redis.call('HSET', lease, 'expires', clock[1] * 1000 + math.floor(clock[2] / 1000) + ARGV[3], 'term', ARGV[3])
elseif what == 'release' then
  redis.call('HDEL', lease, 'owner', 'token', 'expires', 'term')
elseif what == 'acknowledge_outbox' then
  redis.call('LTRIM', base .. 'outbox', ARGV[3], -1)
  for i = 4, #ARGV do
    redis.call('UNLINK', base .. 'execution:' .. ARGV[i])
    redis.call('HDEL', base .. 'copied', ARGV[i])
  end
elseif what == 'acknowledge_copies' then
  for i = 3, #ARGV, 2 do
    -- one that was archived meanwhile would stay in the hash for ever
    if redis.call('EXISTS', base .. 'execution:' .. ARGV[i]) == 1 then
      redis.call('HSET', base .. 'copied', ARGV[i], ARGV[i + 1])
    end
  end
elseif what == 'forget_copies' then
  redis.call('UNLINK', base .. 'copied')
elseif what == 'acknowledge_commit' then
  redis.call('HSET', lease, 'cold', ARGV[3])
elseif what == 'wipe' then
  for i = 3, #ARGV do
    redis.call('UNLINK', ARGV[i])
  end
elseif what == 'restore' then
  for i = 3, #ARGV, 2 do
    redis.call('RPUSH', base .. 'execution:' .. ARGV[i], ARGV[i + 1])
    redis.call('SADD', base .. 'active', ARGV[i])
    redis.call('HDEL', base .. 'copied', ARGV[i])
  end
elseif what == 'built' then
  -- e is where the feed goes on: readers notice that something is missing
  redis.call('HSET', lease, 'built', ARGV[3], 'n', ARGV[4], 'e', string.format('%.0f', ARGV[4] * 4096))
end
return 1
