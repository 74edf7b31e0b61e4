-- Schema 5: the state that users see, beside the phase that the store goes by.
--
-- executions.phase            `waiting` for one that waits for its trigger, `started` from the moment that it should run,
--                             `ended`. Most rows have ended: they have this column without being written.
-- executions.state            PENDING until the first commit, then RUNNING. Before, PENDING was one that waits and RUNNING
--                             any that should run, also without changes.
-- executions.control_request  was `wish`.
-- dead_letters                was `letters`, with the column `letter`.
--
-- Indexes and the view that are dropped here are made again by schema.sql.
DROP VIEW IF EXISTS penstock_executions;
ALTER TABLE executions RENAME COLUMN wish TO control_request;
ALTER TABLE executions ADD COLUMN phase TEXT NOT NULL DEFAULT 'ended';
UPDATE executions SET phase = 'waiting' WHERE state = 'PENDING';
UPDATE executions SET phase = 'started' WHERE state IN ('RUNNING', 'PAUSED');
UPDATE executions SET state = 'PENDING'
  WHERE state = 'RUNNING' AND NOT EXISTS (SELECT 1 FROM changes WHERE changes.n = executions.n);
DROP INDEX IF EXISTS by_state;
DROP INDEX IF EXISTS by_workflow;

ALTER TABLE letters RENAME TO dead_letters;
ALTER TABLE dead_letters RENAME COLUMN letter TO dead_letter;
DROP INDEX IF EXISTS letters_of;
DROP INDEX IF EXISTS open_letters;
DROP INDEX IF EXISTS letters_by_handler;
