-- Schedules in the file.

-- insert_schedule --
-- Stores a new schedule, unless its name is taken. Arguments: id, name, revision, schedule. Result: 1.
INSERT INTO schedules (id, name, revision, schedule) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1

-- update_schedule --
-- Stores a schedule again. Arguments: new revision, schedule, id, expected revision. Result: 1, or nothing if it has moved on.
UPDATE schedules SET revision = ?, schedule = ? WHERE id = ? AND revision = ? RETURNING 1

-- write_slot --
-- Stores what has become of a slot; one that has a row is only written if it was queued. Arguments: schedule, slot, moment,
-- time, outcome, reason, execution. Result: 1 if it is written.
INSERT INTO slots (schedule_id, slot, at, recorded_at, outcome, reason, execution_id) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (schedule_id, slot) DO UPDATE SET recorded_at = excluded.recorded_at, outcome = excluded.outcome,
  reason = excluded.reason, execution_id = excluded.execution_id
WHERE slots.outcome = 'queued' RETURNING 1

-- select_schedule --
-- A schedule. Argument: name. Result: schedule.
SELECT schedule FROM schedules WHERE name = ?

-- select_page --
-- Schedules by name. Arguments: the name before, how many. Result: schedule.
SELECT schedule FROM schedules WHERE name > ? ORDER BY name LIMIT ?

-- select_all --
-- All schedules. Result: schedule.
SELECT schedule FROM schedules

-- delete_schedule --
-- Deletes a schedule. Argument: name. Result: id.
DELETE FROM schedules WHERE name = ? RETURNING id

-- delete_slots --
-- Deletes the slots of a schedule. Argument: its id.
DELETE FROM slots WHERE schedule_id = ?

-- forget_slots --
-- Deletes old rows of slots. Arguments: time, how many at most.
DELETE FROM slots WHERE (schedule_id, slot) IN (SELECT schedule_id, slot FROM slots WHERE recorded_at < ? LIMIT ?)
