-- Workflow versions, aliases and known handlers in the file.

-- select_known --
-- The version with a content, by name or inline. Arguments: name, content hash, inline hash. Result: name, version,
-- content hash, document, created_at.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = ? AND (content_hash = ? AND NOT deleted OR content_hash = ?)

-- select_latest --
-- The newest version that isn't deleted. Argument: name. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = ? AND NOT deleted
ORDER BY version DESC LIMIT 1

-- select_listed --
-- The version with a content, unless it is deleted. Arguments: name, content hash. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = ? AND content_hash = ? AND NOT deleted

-- select_by_hash --
-- The version with a content, also if it is deleted. Arguments: name, content hash. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = ? AND content_hash = ?

-- select_by_number --
-- A version by its number, also if it is deleted. Arguments: name, version. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = ? AND version = ?

-- select_versions --
-- Versions that aren't deleted, the newest first. Argument: name. Result: as select_known.
SELECT name, version, content_hash, document, created_at FROM workflows
WHERE name = ? AND NOT deleted ORDER BY version DESC

-- insert_version --
-- Stores the next version of a name. Arguments: name, content hash, time, deleted (1 for an inline document),
-- document.
INSERT INTO workflows (name, version, content_hash, created_at, deleted, document)
SELECT ?1, coalesce(max(version), 0) + 1, ?2, ?3, ?4, ?5 FROM workflows WHERE name = ?1

-- undelete_version --
-- Takes back that a version is deleted. Arguments: name, content hash. Result: one changed row, or none if there is
-- no such version.
UPDATE workflows SET deleted = 0 WHERE name = ? AND content_hash = ?

-- delete_versions --
-- Marks all versions as deleted. Argument: name. Result: the number of changed rows.
UPDATE workflows SET deleted = 1 WHERE name = ? AND NOT deleted

-- has_version --
-- Whether there is a version that isn't deleted. Arguments: name, version. Result: a row if so.
SELECT 1 FROM workflows WHERE name = ? AND version = ? AND NOT deleted

-- select_workflows --
-- Workflows by name. Arguments: the name to begin behind, limit. Result: name, latest version, number of versions,
-- created_at of the first and of the latest.
SELECT rows.name, latest, versions, first_one.created_at, newest.created_at
FROM (
  SELECT name, max(version) AS latest, min(version) AS first, count(*) AS versions
  FROM workflows
  WHERE NOT deleted AND name > ? GROUP BY name ORDER BY name LIMIT ?
) AS rows
JOIN workflows AS newest ON newest.name = rows.name AND newest.version = latest
JOIN workflows AS first_one ON first_one.name = rows.name AND first_one.version = first
ORDER BY rows.name

-- select_aliases --
-- Aliases of a workflow. Argument: name. Result: alias, weights.
SELECT alias, weights FROM aliases WHERE name = ? ORDER BY alias

-- put_alias --
-- Sets an alias. Arguments: name, alias, weights.
INSERT OR REPLACE INTO aliases VALUES (?, ?, ?)

-- delete_alias --
-- Removes an alias. Arguments: name, alias. Result: the number of deleted rows.
DELETE FROM aliases WHERE name = ? AND alias = ?

-- delete_aliases --
-- Removes all aliases of a workflow. Argument: name.
DELETE FROM aliases WHERE name = ?

-- put_handlers --
-- Stores known handlers. Completed by `VALUES` and the rows (writer.insert_many).
INSERT OR REPLACE INTO handlers

-- select_handlers --
-- Known handlers. No arguments. Result: name, defaults.
SELECT name, defaults FROM handlers
