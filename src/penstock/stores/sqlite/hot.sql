-- What a commit writes. `insert_…` is completed by `VALUES` and the rows (writer.insert_many).

-- insert_changes --
-- The changes of a commit.
INSERT INTO changes (n, change)

-- set_state --
-- Pauses or resumes an execution. Arguments: state, n.
UPDATE executions SET state = ? WHERE n = ?

-- put_timer --
-- Sets the timer of an execution. Arguments: n, time.
INSERT OR REPLACE INTO timers (n, wake_at) VALUES (?, ?)

-- delete_timer --
-- Clears the timer of an execution. Argument: n.
DELETE FROM timers WHERE n = ?

-- insert_dead_letters --
-- Dead letters of a commit.
INSERT INTO dead_letters (n, handler, category, dead_letter)

-- put_reports --
-- Reports of executions that have ended. Completed as the insertions are.
INSERT OR REPLACE INTO reports (n, report)
