#!lua flags=allow-oom
-- Claimed tasks of a partition: the workers' pending lists.
--
-- KEYS 1  penstock:{p}:lease, which only names the partition
-- ARGV    one of
--         gone, worker, then stream, entry id…
--             answers the numbers (from 1) of those that aren't on the worker's list any more
--         pending, worker, limit
--             answers stream, entry id, task…
--         tasks, limit, bytes
--             answers worker, milliseconds since it fetched the task, task…;
--             of each worker at most `limit` tasks, and in all at most `bytes` bytes of tasks
--         back, worker, then stream, entry id…
--             gives tasks back, so that any worker can fetch them; answers how many
--         consumers
--             answers worker, number of tasks on its list in a stream…; without empty lists
--         forget, worker
--             removes it from the groups where its list is empty; answers 1
--         depths
--             answers stream, how many tasks wait, how many are claimed…
-- Reads   queues, tasks:<stream>
-- Writes  back: tasks:<stream>, wake, moved:<stream>:<entry id> (new entry id); forget: groups of
--         tasks:<stream>
local base = string.sub(KEYS[1], 1, -6)
local what, worker = ARGV[1], ARGV[2]

local function key_of(stream)
  return base .. 'tasks:' .. stream
end

local function is_mine(stream, id)
  local mine = redis.pcall('XPENDING', key_of(stream), 'workers', id, id, 1, worker)
  return not mine.err and #mine > 0
end

local function streams()
  return redis.call('SMEMBERS', base .. 'queues')
end

-- a stream that a rebuild has just removed has no lists
local function pending(stream, ...)
  local found = redis.pcall('XPENDING', key_of(stream), 'workers', ...)
  return found.err and {} or found
end

local actions = {}

function actions.gone()
  local answer = {}
  for i = 3, #ARGV, 2 do
    if not is_mine(ARGV[i], ARGV[i + 1]) then
      answer[#answer + 1] = (i - 1) / 2
    end
  end
  return answer
end

function actions.pending()
  local answer, left = {}, tonumber(ARGV[3])
  for _, stream in ipairs(streams()) do
    if left > 0 then
      for _, item in ipairs(pending(stream, '-', '+', left, worker)) do
        local entry = redis.call('XRANGE', key_of(stream), item[1], item[1])[1]
        local size = #answer
        answer[size + 1], answer[size + 2], answer[size + 3] = stream, item[1], entry and entry[2][2] or ''
        left = left - 1
      end
    end
  end
  return answer
end

function actions.tasks()
  local answer, left, room = {}, {}, tonumber(ARGV[3])
  for _, stream in ipairs(streams()) do
    for _, consumer in ipairs(pending(stream)[4] or {}) do
      local name = consumer[1]
      left[name] = left[name] or tonumber(ARGV[2])
      for _, item in ipairs(left[name] > 0 and pending(stream, '-', '+', left[name], name) or {}) do
        local entry = redis.call('XRANGE', key_of(stream), item[1], item[1])[1]
        if entry and #entry[2][2] <= room then
          local size = #answer
          answer[size + 1], answer[size + 2], answer[size + 3] = name, item[3], entry[2][2]
          left[name], room = left[name] - 1, room - #entry[2][2]
        end
      end
    end
  end
  return answer
end

function actions.back()
  local count = 0
  for i = 3, #ARGV, 2 do
    local stream, id = ARGV[i], ARGV[i + 1]
    local entry = is_mine(stream, id) and redis.call('XRANGE', key_of(stream), id, id)[1]
    if entry then
      local new = redis.call('XADD', key_of(stream), '*', '1', entry[2][2])
      redis.call('SET', base .. 'moved:' .. stream .. ':' .. id, new, 'EX', 86400)
      redis.call('XACK', key_of(stream), 'workers', id)
      redis.call('XDEL', key_of(stream), id)
      count = count + 1
    end
  end
  if count > 0 then
    redis.call('XADD', base .. 'wake', 'MAXLEN', '1', '*', '1', '')
  end
  return count
end

function actions.consumers()
  local answer = {}
  for _, stream in ipairs(streams()) do
    local summary = pending(stream)
    for _, consumer in ipairs(summary[4] or {}) do
      answer[#answer + 1] = consumer[1]
      answer[#answer + 1] = consumer[2]
    end
  end
  return answer
end

function actions.forget()
  for _, stream in ipairs(streams()) do
    if #pending(stream, '-', '+', 1, worker) == 0 then
      redis.pcall('XGROUP', 'DELCONSUMER', key_of(stream), 'workers', worker)
    end
  end
  return 1
end

function actions.depths()
  local answer = {}
  for _, stream in ipairs(streams()) do
    local claimed = pending(stream)[1] or 0
    local size = #answer
    answer[size + 1], answer[size + 2], answer[size + 3] = stream, redis.call('XLEN', key_of(stream)) - claimed, claimed
  end
  return answer
end

return actions[what]()
