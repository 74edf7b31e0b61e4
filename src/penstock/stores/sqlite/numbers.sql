-- The numbers of executions.

-- select_last --
-- The greatest number. No arguments.
SELECT coalesce(max(n), 0) FROM executions

-- select_lead --
-- How far numbers have been ahead of the time. No arguments. Result: seconds as text, or no row.
SELECT value FROM meta WHERE key = 'lead_seconds'

-- put_lead --
-- Stores how far numbers have been ahead. Argument: seconds as text.
INSERT OR REPLACE INTO meta VALUES ('lead_seconds', ?)
