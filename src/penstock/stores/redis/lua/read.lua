#!lua flags=no-writes
-- Reads many executions of a partition in one call.
--
-- KEYS 1  penstock:{p}:lease, which only names the partition
-- ARGV    one of
--         changes, bytes, execution id…
--             answers the list of all changes of each (empty: unknown); it stops behind the
--             execution with which the changes have that many bytes
--         tails, bytes, execution id…
--             the same with the changes that weren't copied to the cold store: answers of each how
--             far it was copied ('' if it wasn't), and the list of changes behind that
--         first, execution id…
--             answers the first change of each, or ''
--         known, execution id…
--             answers 1 or 0 for each
-- Reads   execution:<id>; tails: copied (execution id -> number of copied changes, a space, and what
--         Python notes with it)
local base = string.sub(KEYS[1], 1, -6)

local function key_of(i)
  return base .. 'execution:' .. ARGV[i]
end

local actions = {}

-- Answers `read` of each execution, which gives a value and the changes in it, until there are
-- enough bytes.
local function until_full(read)
  local answer, left = {}, tonumber(ARGV[2])
  for i = 3, #ARGV do
    local value, changes = read(i)
    answer[#answer + 1] = value
    for _, change in ipairs(changes) do
      left = left - #change
    end
    if left <= 0 then
      break
    end
  end
  return answer
end

function actions.changes()
  return until_full(function(i)
    local changes = redis.call('LRANGE', key_of(i), 0, -1)
    return changes, changes
  end)
end

function actions.tails()
  return until_full(function(i)
    local copied = redis.call('HGET', base .. 'copied', ARGV[i]) or ''
    local changes = redis.call('LRANGE', key_of(i), string.match(copied, '^%d+') or 0, -1)
    return {copied, changes}, changes
  end)
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
