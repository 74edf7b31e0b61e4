-- Reads the beginning of an encoded task: execution id, node, generation, attempt, handler.
-- Redis's own cmsgpack can't read byte strings.
local function read_text(data, at)
  local kind = string.byte(data, at)
  if kind >= 0xa0 and kind <= 0xbf then
    return string.sub(data, at + 1, at + kind - 0xa0), at + 1 + kind - 0xa0
  elseif kind == 0xd9 then
    local size = string.byte(data, at + 1)
    return string.sub(data, at + 2, at + 1 + size), at + 2 + size
  elseif kind == 0xda then
    local size = string.byte(data, at + 1) * 256 + string.byte(data, at + 2)
    return string.sub(data, at + 3, at + 2 + size), at + 3 + size
  end
  error('not a text')
end

local function read_number(data, at)
  local kind = string.byte(data, at)
  if kind < 0x80 then
    return kind, at + 1
  end
  local sizes = {[0xcc] = 1, [0xcd] = 2, [0xce] = 4}
  local value = 0
  for i = 1, sizes[kind] do
    value = value * 256 + string.byte(data, at + i)
  end
  return value, at + 1 + sizes[kind]
end

-- execution id, node, generation, attempt, and where the rest begins
local function read_beginning(data)
  local at = string.byte(data, 1) == 0xdc and 4 or 2
  local execution, node, generation, attempt
  execution, at = read_text(data, at)
  node, at = read_text(data, at)
  generation, at = read_number(data, at)
  attempt, at = read_number(data, at)
  return execution, node, generation, attempt, at
end

-- execution id, and the name of the task in onhold:<id>
local function read_task(data)
  local execution, node, generation, attempt = read_beginning(data)
  return execution, generation .. ':' .. attempt .. ':' .. node
end

local function read_handler(data)
  local _, _, _, _, at = read_beginning(data)
  return (read_text(data, at))
end
