-- Workflow versions, aliases and known handlers in PostgreSQL.

-- select_known --
-- The version with a content, by name or inline. Arguments: name, content hash, inline hash. Result: name, version,
-- content hash, document, created_at.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = %s AND (content_hash = %s AND NOT deleted OR content_hash = %s)

-- select_latest --
-- The newest version that isn't deleted. Argument: name. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = %s AND NOT deleted
ORDER BY version DESC LIMIT 1

-- select_listed --
-- The version with a content, unless it is deleted. Arguments: name, content hash. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = %s AND content_hash = %s AND NOT deleted

-- select_by_hash --
-- The version with a content, also if it is deleted. Arguments: name, content hash. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = %s AND content_hash = %s

-- select_by_number --
-- A version by its number, also if it is deleted. Arguments: name, version. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = %s AND version = %s

-- select_versions --
-- Versions that aren't deleted, the newest first. Argument: name. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = %s AND NOT deleted ORDER BY version DESC

-- lock_name --
-- Locks a workflow's name until the transaction ends. Argument: name.
-- One process at a time numbers the versions of a name. The first number tells our locks from those of other
-- programs.
SELECT pg_advisory_xact_lock(70511, hashtext(%s))

-- insert_version --
-- Stores the next version of a name. Arguments: name, content hash, time, deleted (true for an inline document),
-- document, name.
INSERT INTO workflows (name, version, content_hash, created_at, deleted, document)
SELECT %s, coalesce(max(version), 0) + 1, %s, %s, %s, %s FROM workflows WHERE name = %s

-- undelete_version --
-- Takes back that a version is deleted. Arguments: name, content hash. Result: one changed row, or none if there is
-- no such version.
UPDATE workflows SET deleted = false WHERE name = %s AND content_hash = %s

-- put_version_back --
-- Stores a version under its number, unless that is taken. Arguments: name, version, content hash, created_at,
-- deleted, document.
INSERT INTO workflows (name, version, content_hash, created_at, deleted, document)
VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING

-- delete_workflow --
-- Marks all versions as deleted, and removes the aliases. Arguments: name, name. Result: the number of changed
-- versions.
WITH gone AS (DELETE FROM aliases WHERE name = %s)
UPDATE workflows SET deleted = true WHERE name = %s AND NOT deleted

-- select_missing --
-- The first of some versions that doesn't exist. Arguments: versions, name. Result: version; no row if all exist.
SELECT wanted FROM unnest(%s::numeric[]) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM workflows WHERE name = %s AND version = wanted AND NOT deleted)
ORDER BY wanted LIMIT 1

-- select_workflows --
-- Workflows by name. Arguments: the name to begin behind, limit. Result: name, latest version, number of versions,
-- created_at of the first and of the latest.
SELECT listed.name, latest, versions, first_one.created_at, newest.created_at
FROM (
  SELECT name, max(version) AS latest, min(version) AS first, count(*) AS versions
  FROM workflows
  WHERE NOT deleted AND name > %s GROUP BY name ORDER BY name LIMIT %s
) AS listed
JOIN workflows AS newest ON newest.name = listed.name AND newest.version = latest
JOIN workflows AS first_one ON first_one.name = listed.name AND first_one.version = first
ORDER BY listed.name

-- select_aliases_of --
-- Aliases of several workflows. Argument: names. Result: name, alias, weights.
SELECT name, alias, weights FROM aliases WHERE name = ANY(%s) ORDER BY name, alias

-- select_aliases --
-- Aliases of a workflow. Argument: name. Result: alias, weights.
SELECT alias, weights FROM aliases WHERE name = %s ORDER BY alias

-- put_alias --
-- Sets an alias. Arguments: name, alias, weights.
INSERT INTO aliases (name, alias, weights) VALUES (%s, %s, %s)
ON CONFLICT (name, alias) DO UPDATE SET weights = excluded.weights

-- delete_alias --
-- Removes an alias. Arguments: name, alias. Result: the number of deleted rows.
DELETE FROM aliases WHERE name = %s AND alias = %s

-- put_handlers --
-- Stores known handlers. Arguments: names, defaults.
INSERT INTO handlers (name, defaults) SELECT * FROM unnest(%s::text[], %s::bytea[])
ON CONFLICT (name) DO UPDATE SET defaults = excluded.defaults

-- select_handlers --
-- Known handlers. No arguments. Result: name, defaults.
SELECT name, defaults FROM handlers
