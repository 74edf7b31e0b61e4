#!lua flags=allow-oom
-- Looks for a task among those that wait in a stream, and counts those before it.
--
-- KEYS 1  penstock:{p}:lease, which only names the partition
-- ARGV    stream, first and last entry id (as XRANGE takes them), how many entries at most,
--         then the task's execution id, generation:attempt:node
-- Reads   tasks:<stream>
-- Answers how many other tasks it has seen, id of the last of them or '', entry id of the task
--         or ''
local base = string.sub(KEYS[1], 1, -6)
local seen, last, found = 0, '', ''

-- include task

local entries = redis.call('XRANGE', base .. 'tasks:' .. ARGV[1], ARGV[2], ARGV[3], 'COUNT', ARGV[4])
for _, entry in ipairs(entries) do
  -- of a task that can't be read, the first is a message
  local _, execution, field = pcall(read_task, entry[2][2])
  if execution == ARGV[5] and field == ARGV[6] then
    found = entry[1]
    break
  end
  seen, last = seen + 1, entry[1]
end
return {seen, last, found}
