#!lua flags=allow-oom
-- Appends events of the owner to its inbox, also when Redis is out of memory: handling them is what
-- frees memory.
--
-- KEYS 1  penstock:{p}:inbox (stream)
-- ARGV    schema, event…; at most some hundreds
-- Writes  inbox
-- Answers 1
redis.call('XADD', KEYS[1], '1-*', unpack(ARGV))
return 1
