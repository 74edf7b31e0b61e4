-- The changes of an execution in segments: a checkpoint adds what is new since the last one.
--
-- segments               was `archives`, which had one row for each execution, written again by each checkpoint. A
--                        segment has a part of the changes of an execution (msgpack list of encoded codec.Change). All
--                        changes are those of its segments, in order of `first`. They are of one generation.
-- segments.first         the index of its first change, counted from the begin of its generation, and
-- segments.until         that behind its last one. 0 in rows of an earlier version, which have all changes in one: the next
--                        copy of one that runs has all of them, too.
-- partitions.claim_term  was `term`.
--
-- Most rows have ended: they have both columns without being written.
--
-- Processes of the version before can't work with this schema. An orchestrator can't claim a partition, nor renew its
-- claim, and so loses its lease. That is what the renamed `term` is for: if only its archives failed, it would take them
-- for executions that can't be archived, and take them off its outbox.
ALTER TABLE archives RENAME TO segments;
ALTER INDEX archives_pkey RENAME TO segments_pkey;
ALTER TABLE segments
  ADD COLUMN first integer NOT NULL DEFAULT 0,
  ADD COLUMN until integer NOT NULL DEFAULT 0,
  DROP COLUMN revision,
  DROP CONSTRAINT segments_pkey,
  ADD CONSTRAINT segments_pkey PRIMARY KEY (n, generation, first);
ALTER TABLE segments ALTER COLUMN first DROP DEFAULT, ALTER COLUMN until DROP DEFAULT;

ALTER TABLE partitions RENAME COLUMN term TO claim_term;
