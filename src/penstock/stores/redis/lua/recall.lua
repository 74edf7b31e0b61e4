#!lua flags=allow-oom
-- Recalls tasks that wait and that no worker has claimed: appends events to the inbox and removes
-- the tasks from their stream, in one step. A task that was claimed or removed meanwhile is left
-- alone, and its event is dropped.
--
-- KEYS 1  penstock:{p}:lease (hash)
-- ARGV    token of the owner's lease, stream, then entry id, event…; at most some hundreds
-- Writes  inbox, tasks:<stream>
-- Answers how many tasks were recalled
-- Refuses with FENCED if another owner has the lease
local lease, base = KEYS[1], string.sub(KEYS[1], 1, -6)
if redis.call('HGET', lease, 'token') ~= ARGV[1] then
  return redis.error_reply('FENCED the partition belongs to another owner now')
end
local key = base .. 'tasks:' .. ARGV[2]
local events, ids = {}, {}
for i = 3, #ARGV, 2 do
  local id = ARGV[i]
  local pending = redis.pcall('XPENDING', key, 'workers', id, id, 1)
  if not pending.err and #pending == 0 and #redis.call('XRANGE', key, id, id) == 1 then
    events[#events + 1] = '1'
    events[#events + 1] = ARGV[i + 1]
    ids[#ids + 1] = id
  end
end
if #ids > 0 then
  redis.call('XADD', base .. 'inbox', '1-*', unpack(events))
  redis.call('XDEL', key, unpack(ids))
end
return #ids
