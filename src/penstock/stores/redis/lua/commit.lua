#!lua flags=allow-oom
-- One commit of a partition: all of it, or nothing. It writes encoded records and decides nothing.
--
-- KEYS 1  penstock:{p}:lease (hash); all other keys of the partition are named after it
-- ARGV    token, commit number that the store must be at, position in the inbox,
--         first inbox entry that is still needed,
--         then lists, each behind its number of items:
--         changes   execution id, change
--         tasks     stream, task
--         stops     stream, entry id
--         timers    time, execution id
--         cleared   execution id
--         dropped   execution id, field of a task that was set aside
--         pauses    execution id
--         resumes   execution id
--         ended     execution id
--         outbox    entry
--         then the history lines of this commit for the feed ('' if there are none), the position
--         of their last part, and how many commits the feed retains
-- Reads   diverted:<stream>:<entry id> (entry id and stream of a task that a worker without its
--         handler has diverted)
-- Writes  lease, inbox (trimmed), execution:<id>, active, tasks:<stream>, queues, ranks, wake,
--         held, timers, outbox, events,
--         onhold:<id> (generation:attempt:node -> stream, entry id or '', task; separated by zero
--         bytes),
--         moved:<stream>:<entry id> (new entry id of a task that was given back; read as well)
-- Answers the time of the next timer or '', then the entry ids of the tasks, in order ('' for one
--         that was set aside)
-- Refuses with FENCED if the lease has another token or the store is at another commit
local lease = KEYS[1]
local base = string.sub(lease, 1, -6)
local now = redis.call('HMGET', lease, 'token', 'n', 'e')
if now[1] ~= ARGV[1] then
  return redis.error_reply('FENCED the partition belongs to another owner now')
end
if (now[2] or '0') ~= ARGV[2] then
  return redis.error_reply('FENCED the store has moved on from commit ' .. ARGV[2])
end

local MOVED_SECONDS = 86400
local number = ARGV[2] + 1
local at = 5

local function next_list()
  local count = tonumber(ARGV[at])
  at = at + 1
  return count
end

local function many(command, key, first, count)
  for start = first, first + count - 1, 4000 do
    redis.call(command, key, unpack(ARGV, start, math.min(start + 3999, first + count - 1)))
  end
end

-- include task

local known = {}
local function enqueue(stream, task)
  if not known[stream] then
    if redis.call('SADD', base .. 'queues', stream) == 1 then
      redis.call('XGROUP', 'CREATE', base .. 'tasks:' .. stream, 'workers', '0', 'MKSTREAM')
      if string.sub(stream, 1, 2) ~= '0:' or string.find(stream, '\31', 1, true) then
        redis.call('SADD', base .. 'ranks', stream)
      end
    end
    known[stream] = true
  end
  return redis.call('XADD', base .. 'tasks:' .. stream, '*', '1', task)
end

for _ = 1, next_list() do
  local id = ARGV[at]
  if redis.call('RPUSH', base .. 'execution:' .. id, ARGV[at + 1]) == 1 then
    redis.call('SADD', base .. 'active', id)
  end
  at = at + 2
end

local tasks, answer = next_list(), {''}
local some_paused = tasks > 0 and redis.call('SCARD', base .. 'held') > 0
local handed_out = 0
for _ = 1, tasks do
  local stream, task = ARGV[at], ARGV[at + 1]
  local execution, field
  if some_paused then
    execution, field = read_task(task)
  end
  if execution and redis.call('SISMEMBER', base .. 'held', execution) == 1 then
    redis.call('HSET', base .. 'onhold:' .. execution, field, stream .. '\0\0' .. task)
    answer[#answer + 1] = ''
  else
    answer[#answer + 1] = enqueue(stream, task)
    handed_out = handed_out + 1
  end
  at = at + 2
end

for _ = 1, next_list() do
  local stream, id = ARGV[at], ARGV[at + 1]
  while id do
    local key, name = base .. 'tasks:' .. stream, stream .. ':' .. id
    redis.call('XACK', key, 'workers', id)
    local is_gone = redis.call('XDEL', key, id) == 0
    -- it was reported already, or given back under another id, or diverted to another stream
    id = is_gone and redis.call('GET', base .. 'moved:' .. name)
    local diverted = is_gone and not id and redis.call('GET', base .. 'diverted:' .. name)
    if diverted then
      id, stream = string.match(diverted, '^(%S+) (.*)$')
    end
  end
  at = at + 2
end

local timers = next_list()
many('ZADD', base .. 'timers', at, 2 * timers)
at = at + 2 * timers
local cleared = next_list()
many('ZREM', base .. 'timers', at, cleared)
at = at + cleared

for _ = 1, next_list() do
  redis.call('HDEL', base .. 'onhold:' .. ARGV[at], ARGV[at + 1])
  at = at + 2
end
for _ = 1, next_list() do
  redis.call('SADD', base .. 'held', ARGV[at])
  at = at + 1
end
for _ = 1, next_list() do
  local id = ARGV[at]
  redis.call('SREM', base .. 'held', id)
  local aside = redis.call('HVALS', base .. 'onhold:' .. id)
  for _, item in ipairs(aside) do
    local stream, old, task = string.match(item, '^(%Z*)%z(%Z*)%z(.*)$')
    local new = enqueue(stream, task)
    if old ~= '' then
      redis.call('SET', base .. 'moved:' .. stream .. ':' .. old, new, 'EX', MOVED_SECONDS)
    end
    handed_out = handed_out + 1
  end
  redis.call('DEL', base .. 'onhold:' .. id)
  at = at + 1
end

local ended = next_list()
if ended > 0 then
  many('SREM', base .. 'active', at, ended)
  many('ZREM', base .. 'timers', at, ended)
  if redis.call('SCARD', base .. 'held') > 0 then
    for i = at, at + ended - 1 do
      if redis.call('SREM', base .. 'held', ARGV[i]) == 1 then
        redis.call('DEL', base .. 'onhold:' .. ARGV[i])
      end
    end
  end
end
at = at + ended

local outbox = next_list()
many('RPUSH', base .. 'outbox', at, outbox)
at = at + outbox

if ARGV[at] ~= '' then
  -- the feed only serves live events: an error in it must not stop the engine
  redis.pcall('XADD', base .. 'events', 'MAXLEN', '~', ARGV[at + 2], number .. '-1', '1', ARGV[at], 'p', now[3] or '0')
  redis.call('HSET', lease, 'n', number, 'position', ARGV[3], 'e', ARGV[at + 1])
else
  redis.call('HSET', lease, 'n', number, 'position', ARGV[3])
end
redis.call('XTRIM', base .. 'inbox', 'MINID', ARGV[4])
if handed_out > 0 then
  redis.call('XADD', base .. 'wake', 'MAXLEN', '1', '*', '1', '')
end
local first = redis.call('ZRANGE', base .. 'timers', 0, 0, 'WITHSCORES')
answer[1] = first[2] or ''
return answer
