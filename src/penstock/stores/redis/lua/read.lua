#!lua flags=no-writes
-- Reads many executions of a partition in one call.
--
-- KEYS 1  penstock:{p}:lease, which only names the partition
-- ARGV    one of
--         changes, bytes, execution id…
--             answers the list of all changes of each (empty: unknown); it stops behind the
--             execution with which the changes have that many bytes
--         first, execution id…
--             answers the first change of each, or ''
--         known, execution id…
--             answers 1 or 0 for each
-- Reads   execution:<id>
local base = string.sub(KEYS[1], 1, -6)

local function key_of(i)
  return base .. 'execution:' .. ARGV[i]
end

local actions = {}

function actions.changes()
  local answer, left = {}, tonumber(ARGV[2])
  for i = 3, #ARGV do
    local changes = redis.call('LRANGE', key_of(i), 0, -1)
    answer[#answer + 1] = changes
    for _, change in ipairs(changes) do
      left = left - #change
    end
    if left <= 0 then
      break
    end
  end
  return answer
end

function actions.first()
  local answer = {}
  for i = 2, #ARGV do
    answer[#answer + 1] = redis.call('LINDEX', key_of(i), 0) or ''
  end
  return answer
end

function actions.known()
  local answer = {}
  for i = 2, #ARGV do
    answer[#answer + 1] = redis.call('EXISTS', key_of(i))
  end
  return answer
end

return actions[ARGV[1]]()
