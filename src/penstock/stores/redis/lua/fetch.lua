#!lua flags=allow-oom
-- Tasks for a worker: no more than it asks for, of a higher priority first. Those of paused executions are set aside.
--
-- KEYS 1  penstock:{p}:lease, which is only there to name the partition
-- ARGV    worker, how many at most, then names of queues
-- Reads   tasks:<stream> as the group `workers`, ranks, held; writes onhold:<id>
-- Answers stream, entry id, task; again and again
local base = string.sub(KEYS[1], 1, -6)
local worker, left = ARGV[1], tonumber(ARGV[2])
local some_held = redis.call('SCARD', base .. 'held') > 0
local answer = {}

local ranks = {}
for _, stream in ipairs(redis.call('SMEMBERS', base .. 'ranks')) do
  local priority, queue = string.match(stream, '^(%-?%d+):(.*)$')
  ranks[queue] = ranks[queue] or {0}
  table.insert(ranks[queue], tonumber(priority))
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

local function take(stream)
  local key = base .. 'tasks:' .. stream
  while left > 0 do
    local got = redis.pcall('XREADGROUP', 'GROUP', 'workers', worker, 'COUNT', left, 'STREAMS', key, '>')
    if not got or got.err or not got[1] then  -- nothing there, or nothing was ever handed out with this priority
      return
    end
    for _, entry in ipairs(got[1][2]) do
      if not (some_held and set_aside(key, stream, entry)) then
        local size = #answer
        answer[size + 1], answer[size + 2], answer[size + 3] = stream, entry[1], entry[2][2]
        left = left - 1
      end
    end
  end
end

local names = {}
for i = 3, #ARGV do
  names[#names + 1] = '0:' .. ARGV[i]
end
local exist = redis.call('SMISMEMBER', base .. 'queues', unpack(names))
for i = 3, #ARGV do
  local queue = ARGV[i]
  local priorities = ranks[queue]
  if priorities then
    table.sort(priorities, function(a, b) return a > b end)
    for _, priority in ipairs(priorities) do
      take(priority .. ':' .. queue)
    end
  elseif exist[i - 2] == 1 then
    take('0:' .. queue)
  end
end
return answer
