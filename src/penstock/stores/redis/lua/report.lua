#!lua flags=allow-oom
-- Reports outcomes of tasks: appends events to the inbox and removes the tasks from the worker's
-- pending list, in one step. Events of tasks that aren't on the list are dropped. The reaper does
-- the same for a dead worker.
--
-- KEYS 1  penstock:{p}:lease (hash)
-- ARGV    token of the reaper's lease or '', worker, 'over' or 'started' (then the tasks stay on
--         the list), then stream, entry id, event…; at most some hundreds
-- Writes  inbox, tasks:<stream>
-- Answers how many events were appended
-- Refuses with FENCED a reaper if another owner has the lease
local lease, base = KEYS[1], string.sub(KEYS[1], 1, -6)
if ARGV[1] ~= '' and redis.call('HGET', lease, 'token') ~= ARGV[1] then
  return redis.error_reply('FENCED the partition belongs to another owner now')
end
local worker, is_over = ARGV[2], ARGV[3] == 'over'
local events, entries, seen = {}, {}, {}
for i = 4, #ARGV, 3 do
  local stream, id = ARGV[i], ARGV[i + 1]
  local mine = redis.pcall('XPENDING', base .. 'tasks:' .. stream, 'workers', id, id, 1, worker)
  if not mine.err and #mine > 0 and not (is_over and seen[stream .. id]) then
    seen[stream .. id] = true
    events[#events + 1] = '1'
    events[#events + 1] = ARGV[i + 2]
    entries[stream] = entries[stream] or {}
    table.insert(entries[stream], id)
  end
end
if #events == 0 then
  return 0
end
redis.call('XADD', base .. 'inbox', '1-*', unpack(events))
if is_over then
  for stream, ids in pairs(entries) do
    redis.call('XACK', base .. 'tasks:' .. stream, 'workers', unpack(ids))
    redis.call('XDEL', base .. 'tasks:' .. stream, unpack(ids))
  end
end
return #events / 2
