-- Who runs a partition, and on which Redis server: what a rebuild is decided by.
--
-- partitions.term        how often it was claimed. Whoever wants to store something for a partition names the term that
--                        it was given; a later claim has made that void.
-- partitions.holder      the orchestrator that claimed it last, and
-- partitions.server      the Redis server that it runs it on, by the id of that server's process.
-- partitions.seen_at     when the holder last said so (this server's clock); 0 if it has given the partition up.
-- partitions.rebuilt_at  when a Redis was last built again for it, and
-- partitions.rebuilt_on  which server that was.
ALTER TABLE partitions
  ADD COLUMN term bigint NOT NULL DEFAULT 0,
  ADD COLUMN holder text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN server text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN seen_at double precision NOT NULL DEFAULT 0,
  ADD COLUMN rebuilt_at double precision NOT NULL DEFAULT 0,
  ADD COLUMN rebuilt_on text COLLATE "C" NOT NULL DEFAULT '';
