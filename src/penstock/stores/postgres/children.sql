-- Executions that other executions have started.

-- select_ended --
-- Children that have ended lately, of unfinished parents. Arguments: partition of the parents, seconds.
-- Result: id, parent, node.
-- By the time of the copy, not of the end: after an outage ends are old, and copies aren't.
SELECT child.id, child.parent, child.parent_node
FROM executions AS child JOIN executions AS parent ON parent.id = child.parent
WHERE child.parent_partition = %b AND parent.phase = 'started'
  AND child.archived_at > extract(epoch FROM clock_timestamp()) - %b::float8

-- select_left --
-- Children that go on though their parents have ended. Argument: partition of the children. Result: intent.
SELECT child.intent FROM executions AS child JOIN executions AS parent ON parent.id = child.parent
WHERE child.partition = %b AND child.phase = 'started' AND child.parent IS NOT NULL
  AND child.control_request IS DISTINCT FROM 'cancel' AND parent.phase = 'ended'
