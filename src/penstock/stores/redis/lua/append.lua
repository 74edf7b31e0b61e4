#!lua flags=allow-oom
-- Events of the owner's own, also when there is no memory for anything new: it is what frees memory.
--
-- KEYS 1  penstock:{p}:inbox
-- ARGV    schema, event; again and again, at most some hundreds
redis.call('XADD', KEYS[1], '1-*', unpack(ARGV))
return 1
