-- Executions that other executions have started.
--
-- executions.parent            the execution whose node has started this one as its child; its `parent_node`, and the
--                              `parent_partition` that it belongs to.
-- executions.archived_at       of a child that has ended: when its end was written here, by this server's clock. Its own
--                              times may be much older, after an outage.
ALTER TABLE executions
  ADD COLUMN parent text COLLATE "C", ADD COLUMN parent_node text COLLATE "C", ADD COLUMN parent_partition integer,
  ADD COLUMN archived_at double precision;
CREATE INDEX children ON executions (parent, n) WHERE parent IS NOT NULL;
CREATE INDEX ended_children ON executions (parent_partition, archived_at) WHERE archived_at IS NOT NULL;
CREATE INDEX unfinished_children ON executions (partition) WHERE phase = 'started' AND parent IS NOT NULL;
