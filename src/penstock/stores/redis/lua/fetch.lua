#!lua flags=allow-oom
-- Fetches tasks for a worker: no more than it asks for, those of a higher priority first, and only
-- those whose handler it has. Tasks of paused executions are set aside. Tasks of other handlers are
-- moved, once, to the stream of their queue and handler.
--
-- KEYS 1  penstock:{p}:lease, which only names the partition
-- ARGV    worker, how many tasks at most, how many queues, their names, then names of handlers;
--         a worker without any names of handlers has all of them
-- Reads   tasks:<stream> as the group `workers`, held
-- Writes  onhold:<id>, tasks:<stream>, tasks:<priority>:<queue>\31<handler>, queues, ranks, wake,
--         diverted:<stream>:<entry id> (new entry id and stream of the task, a blank between)
-- Answers stream, entry id, task…
local base = string.sub(KEYS[1], 1, -6)
local worker, left, queues = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local some_paused = redis.call('SCARD', base .. 'held') > 0
local DIVERTED_SECONDS = 86400
local divertible = 1000  -- in one call: everybody else waits meanwhile
local diverted = 0
local answer = {}

local has
for i = 4 + queues, #ARGV do
  has = has or {}
  has[ARGV[i]] = true
end

-- by queue, the priorities and streams that this worker may read
local ranks = {}
for _, stream in ipairs(redis.call('SMEMBERS', base .. 'ranks')) do
  local priority, queue, handler = string.match(stream, '^(%-?%d+):([^\31]*)\31?(.*)$')
  if handler == '' or not has or has[handler] then
    ranks[queue] = ranks[queue] or {{0, '0:' .. queue}}
    table.insert(ranks[queue], {tonumber(priority), stream})
  end
end

-- include task

local function set_aside(key, stream, entry)
  local fine, execution, field = pcall(read_task, entry[2][2])
  if not fine or redis.call('SISMEMBER', base .. 'held', execution) == 0 then
    return false
  end
  redis.call('HSET', base .. 'onhold:' .. execution, field, stream .. '\0' .. entry[1] .. '\0' .. entry[2][2])
  redis.call('XACK', key, 'workers', entry[1])
  redis.call('XDEL', key, entry[1])
  return true
end

-- moves a task that this worker can't run to a stream for workers that have its handler
local function divert(key, stream, entry)
  local fine, handler = pcall(read_handler, entry[2][2])
  if not fine or has[handler] then
    return false
  end
  local side = string.match(stream, '^[^\31]*') .. '\31' .. handler
  if redis.call('SADD', base .. 'queues', side) == 1 then
    redis.call('XGROUP', 'CREATE', base .. 'tasks:' .. side, 'workers', '0', 'MKSTREAM')
    redis.call('SADD', base .. 'ranks', side)
  end
  local new = redis.call('XADD', base .. 'tasks:' .. side, '*', '1', entry[2][2])
  redis.call('SET', base .. 'diverted:' .. stream .. ':' .. entry[1], new .. ' ' .. side, 'EX', DIVERTED_SECONDS)
  redis.call('XACK', key, 'workers', entry[1])
  redis.call('XDEL', key, entry[1])
  diverted = diverted + 1
  return true
end

local function take(stream)
  local key = base .. 'tasks:' .. stream
  while left > 0 and diverted < divertible do
    local got = redis.pcall('XREADGROUP', 'GROUP', 'workers', worker, 'COUNT', left, 'STREAMS', key, '>')
    -- nothing: it is empty, or no task ever had this priority
    if not got or got.err or not got[1] then
      return
    end
    for _, entry in ipairs(got[1][2]) do
      if not (some_paused and set_aside(key, stream, entry)) and not (has and divert(key, stream, entry)) then
        local size = #answer
        answer[size + 1], answer[size + 2], answer[size + 3] = stream, entry[1], entry[2][2]
        left = left - 1
      end
    end
  end
end

-- the stream of one handler is needed only while tasks wait in it
local function clear(stream)
  if string.find(stream, '\31', 1, true) and redis.call('XLEN', base .. 'tasks:' .. stream) == 0 then
    redis.call('DEL', base .. 'tasks:' .. stream)
    redis.call('SREM', base .. 'queues', stream)
    redis.call('SREM', base .. 'ranks', stream)
  end
end

local names = {}
for i = 4, 3 + queues do
  names[#names + 1] = '0:' .. ARGV[i]
end
local exist = redis.call('SMISMEMBER', base .. 'queues', unpack(names))
for i = 4, 3 + queues do
  local queue = ARGV[i]
  local streams = ranks[queue]
  if streams then
    -- within a priority the streams of handlers come first: their tasks have waited longer
    table.sort(streams, function(a, b)
      if a[1] ~= b[1] then
        return a[1] > b[1]
      end
      return a[2] > b[2]
    end)
    for _, ranked in ipairs(streams) do
      take(ranked[2])
      clear(ranked[2])
    end
  elseif exist[i - 3] == 1 then
    take('0:' .. queue)
  end
end
if diverted > 0 then
  redis.call('XADD', base .. 'wake', 'MAXLEN', '1', '*', '1', '')
end
return answer
