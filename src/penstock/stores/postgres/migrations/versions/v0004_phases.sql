-- The state that users see, beside the phase that the store goes by (stores/phases.py).
--
-- executions.phase            `waiting` for one that waits for its trigger, `started` from the moment that it should run,
--                             `ended`. Most rows have ended: they have this column without being written.
-- executions.state            PENDING until a first copy came from Redis, then as that says. Before, PENDING was one that
--                             waits and RUNNING any that should run.
-- executions.control_request  was `wish`.
-- dead_letters                was `letters`, with the column `letter`.
--
-- Most rows are PENDING and RUNNING for a moment: by_workflow leaves these out, so a row is inserted into four indexes
-- and updated once, in four.
--
-- Processes of the version before can't work with this schema. Whatever they write fails as a whole, and does no harm:
-- they give no phase to new executions, they don't know the new names, and phase_fits_state refuses an end, a trigger or
-- a copy that leaves the phase as it was.
ALTER TABLE executions RENAME COLUMN wish TO control_request;
ALTER TABLE executions ADD COLUMN phase text COLLATE "C" NOT NULL DEFAULT 'ended';
UPDATE executions SET phase = 'waiting' WHERE state = 'PENDING';
UPDATE executions SET phase = 'started', state = CASE WHEN generation = 0 THEN 'PENDING' ELSE state END
  WHERE state IN ('RUNNING', 'PAUSED');
ALTER TABLE executions
  ALTER COLUMN phase DROP DEFAULT,
  ADD CONSTRAINT phase_fits_state CHECK (
    CASE phase
      WHEN 'waiting' THEN state = 'PENDING' AND generation = 0
      WHEN 'started' THEN state IN ('PENDING', 'RUNNING', 'PAUSED') AND (state = 'PENDING') = (generation = 0)
      WHEN 'ended' THEN state IN ('COMPLETED', 'FAILED', 'CANCELLED')
      ELSE false
    END
  );
DROP INDEX by_state, by_workflow, unfinished;
CREATE INDEX by_state ON executions (phase, state, n);
CREATE INDEX by_workflow ON executions (workflow, state, n) WHERE phase <> 'started' OR state = 'PAUSED';
CREATE INDEX unfinished ON executions (partition, id) WHERE phase = 'started';

ALTER TABLE letters RENAME TO dead_letters;
ALTER TABLE dead_letters RENAME COLUMN letter TO dead_letter;
ALTER SEQUENCE letters_id_seq RENAME TO dead_letters_id_seq;
ALTER INDEX letters_pkey RENAME TO dead_letters_pkey;
ALTER INDEX letter_marks RENAME TO dead_letter_marks;
ALTER INDEX letters_of RENAME TO dead_letters_of;
ALTER INDEX open_letters RENAME TO open_dead_letters;
ALTER INDEX letters_by_handler RENAME TO dead_letters_by_handler;

-- Promised to users: docs/history.md. An execution that is about to begin is RUNNING here, as it was before.
CREATE OR REPLACE VIEW penstock_executions AS
SELECT id AS execution_id, workflow, version,
  CASE WHEN phase = 'started' AND state = 'PENDING' THEN 'RUNNING' ELSE state END AS state,
  to_timestamp(created_at) AS created_at,
  to_timestamp(started_at) AS started_at, to_timestamp(ended_at) AS finished_at, ended_at - created_at AS seconds,
  replace(labels, '\u0000', '\ufffd')::jsonb AS labels, report -> 'input' AS input, report ->> 'error_category' AS error_category,
  report ->> 'error_message' AS error_message, report ->> 'error_node' AS error_node, retry_of
FROM executions LEFT JOIN reports USING (n);
