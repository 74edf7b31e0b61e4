#!lua flags=allow-oom
-- The orchestrators' membership: one announces that it is alive, and learns which others are.
--
-- KEYS 1  penstock:{fleet}:orchestrators (hash: name -> "expires|milliseconds|about")
-- ARGV    name, milliseconds for which this is valid, about (JSON); with '' as name it only reads
-- Writes  the name's field; fields that have expired are removed
-- Answers name, about…
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if ARGV[1] ~= '' then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + ARGV[2]) .. '|' .. ARGV[2] .. '|' .. ARGV[3])
end
local answer, all = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local expires, term, about = string.match(all[i + 1], '^(%d+)|(%d+)|(.*)$')
  local left = expires and expires - now or 0
  if left > 0 and left <= tonumber(term) then  -- longer: from before the clock went back
    answer[#answer + 1] = all[i]
    answer[#answer + 1] = about
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return answer
