-- Schedules in PostgreSQL.

-- insert_schedule --
-- Stores a new schedule, unless its name is taken. Arguments: id, partition, revision, name, schedule. Result: 1.
INSERT INTO schedules (id, partition, revision, name, schedule) VALUES (%s, %s, %s, %s, %b)
ON CONFLICT DO NOTHING RETURNING 1

-- update_schedule --
-- Stores a schedule again, and locks its row. Arguments: new revision, schedule, id, expected revision. Result: 1, or nothing
-- if it has moved on.
UPDATE schedules SET revision = %s, schedule = %b WHERE id = %s AND revision = %s RETURNING 1

-- write_slot --
-- Stores what has become of a slot; one that has a row is only written if it was queued. Arguments: schedule, slot, moment,
-- time, outcome, reason, execution. Result: 1 if it is written.
INSERT INTO slots (schedule_id, slot, at, recorded_at, outcome, reason, execution_id) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (schedule_id, slot) DO UPDATE SET recorded_at = excluded.recorded_at, outcome = excluded.outcome,
  reason = excluded.reason, execution_id = excluded.execution_id
WHERE slots.outcome = 'queued' RETURNING 1

-- select_schedule --
-- A schedule. Argument: name. Result: schedule.
SELECT schedule FROM schedules WHERE name = %s

-- select_page --
-- Schedules by name. Arguments: the name before, how many. Result: schedule.
SELECT schedule FROM schedules WHERE name > %s ORDER BY name LIMIT %s

-- select_partition --
-- Schedules that the owner of a partition looks after. Argument: partition. Result: schedule.
SELECT schedule FROM schedules WHERE partition = %s

-- delete_schedule --
-- Deletes a schedule. Argument: name. Result: id.
DELETE FROM schedules WHERE name = %s RETURNING id

-- delete_slots --
-- Deletes the slots of a schedule. Argument: its id.
DELETE FROM slots WHERE schedule_id = %s

-- forget_slots --
-- Deletes old rows of slots. Arguments: time, how many at most. Result: the number of deleted rows.
DELETE FROM slots WHERE ctid = ANY(ARRAY(SELECT ctid FROM slots WHERE recorded_at < %s LIMIT %s))
