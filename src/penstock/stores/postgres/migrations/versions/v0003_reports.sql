-- What SQL can read of executions that have ended.
--
-- reports  of each execution that has ended, what the views show of it (JSON, stores/reports.py).
--
-- The views are promised to users: docs/history.md. Columns may be added, none may change.
CREATE TABLE reports (n bigint PRIMARY KEY, report jsonb NOT NULL);

CREATE VIEW penstock_executions AS
SELECT id AS execution_id, workflow, version, state, to_timestamp(created_at) AS created_at,
  to_timestamp(started_at) AS started_at, to_timestamp(ended_at) AS finished_at, ended_at - created_at AS seconds,
  replace(labels, '\u0000', '\ufffd')::jsonb AS labels, report -> 'input' AS input, report ->> 'error_category' AS error_category,
  report ->> 'error_message' AS error_message, report ->> 'error_node' AS error_node, retry_of
FROM executions LEFT JOIN reports USING (n);

CREATE VIEW penstock_nodes AS
SELECT executions.id AS execution_id, workflow, version, node.key AS node_id, node.value ->> 'state' AS state,
  (node.value ->> 'attempts')::integer AS attempts,
  to_timestamp((node.value ->> 'queued_at')::double precision) AS queued_at,
  to_timestamp((node.value ->> 'started_at')::double precision) AS started_at,
  to_timestamp((node.value ->> 'finished_at')::double precision) AS finished_at,
  (node.value ->> 'finished_at')::double precision - (node.value ->> 'started_at')::double precision AS seconds,
  node.value ->> 'reason' AS reason, node.value ->> 'worker_id' AS worker_id,
  node.value ->> 'error_category' AS error_category, node.value ->> 'error_message' AS error_message
FROM executions JOIN reports USING (n), jsonb_each(report -> 'nodes') AS node;
