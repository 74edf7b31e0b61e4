"""Fences and refusals of PostgreSQL: what is older, or comes twice, changes no row."""

from __future__ import annotations

from scripts.guards.guard import Guard

GUARDS = [
    Guard(
        "a call that is cancelled while its connection breaks is not tried again", "stores/postgres/database.py",
        "if _times_cancelled() > cancelled:", "if False:",
        "tests/postgres/test_outages.py",
    ),
    Guard(
        "an older copy changes no row", "stores/postgres/copying.py",
        "      AND (executions.generation, executions.revision) < (copy.generation, copy.revision)\n", "",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a row that has ended is overwritten by no copy", "stores/postgres/copying.py",
        "WHERE executions.id = copy.id AND {HAS_NOT_ENDED}\n",
        "WHERE executions.id = copy.id\n",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "changes of another generation don't follow a row", "stores/postgres/copying.py",
        " AND executions.generation = copy.generation\n      AND", "\n      AND",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "changes of what has ended reach up to its end", "stores/postgres/copying.py",
        "\n      AND ({HAS_NOT_ENDED} OR executions.revision = copy.revision)",
        "",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "older changes replace no newer ones", "stores/postgres/copying.py",
        "\n      WHERE (old.generation, old.revision) < (excluded.generation, excluded.revision)", "",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "copies from before a rebuild are refused", "stores/split.py",
        "if found >= commit_number + REBUILD_JUMP // 2:", "if False:",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a commit number never goes down", "stores/postgres/copying.py",
        "SET commit_number = greatest(commit_number, %(number)s)", "SET commit_number = %(number)s",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a partition is claimed on one server at a time", "stores/postgres/claims.py",
        "\n      AND (server = %(server)s OR holder = %(holder)s OR seen_at < {NOW} - %(seconds)s)", "",
        "tests/postgres/test_claims.py",
    ),
    Guard(
        "a claim is renewed by its term", "stores/postgres/claims.py",
        "server = %s WHERE number = %s AND term = %s", "server = %s WHERE number = %s AND %s > 0",
        "tests/postgres/test_claims.py",
    ),
    Guard(
        "a claim is given up by its holder only", "stores/postgres/claims.py",
        "seen_at = 0 WHERE number = %s AND term = %s", "seen_at = 0 WHERE number = %s AND %s >= 0",
        "tests/postgres/test_claims.py",
    ),
    Guard(
        "a rebuild is begun by whoever has claimed the partition", "stores/postgres/claims.py",
        "WHERE number = %s AND term = %s RETURNING generation", "WHERE number = %s AND %s > 0 RETURNING generation",
        "tests/postgres/test_claims.py",
    ),
    Guard(
        "a rebuild that isn't this owner's to begin is not begun", "stores/postgres/claims.py",
        "        if not rows:\n            raise Fenced(", "        if False:\n            raise Fenced(",
        "tests/postgres/test_claims.py",
    ),
    Guard(
        "copies are stored by their term", "stores/postgres/copying.py",
        "            check_term(partition, term, found_term)\n", "",
        "tests/postgres/test_claims.py",
    ),
    Guard(
        "copies wait for a rebuild that is under way", "stores/postgres/copying.py",
        "WHERE number = %s FOR UPDATE", "WHERE number = %s",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "copies are stored by their commit number", "stores/postgres/copying.py",
        "            check_numbers(partition, commit_number, cold_number, found)\n", "",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a partition's generation is no lower than its copies'", "stores/postgres/copying.py",
        "      generation = greatest(generation, %(generation)s)", "      generation = generation",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a database that was put back to an older copy takes no copies before that is dealt with", "stores/split.py",
        "if found < cold_number:", "if False:",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "an archive or a checkpoint without a row gets one", "stores/postgres/copying.py",
        "            return await _write_again(connection, partition, copies)\n\n    async def write_again",
        "            return Written()\n\n    async def write_again",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a row is written again only where there is none", "stores/postgres/copying.py",
        "    WHERE NOT EXISTS (SELECT 1 FROM executions WHERE executions.id = given.id)\n", "",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a version is put back under a number that nobody else has", "stores/postgres/definitions.py",
        "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING", "VALUES (%s, %s, %s, %s, %s, %s)",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a call that is given up doesn't wait for a silent server", "stores/postgres/database.py",
        "await HastyConnection.connect(", "await AsyncConnection.connect(",
        "tests/postgres/test_outages.py",
    ),
    Guard(
        "calls to a silent server are refused at once", "stores/postgres/database.py",
        "        if self._is_silent:\n            raise", "        if False:\n            raise",
        "tests/postgres/test_outages.py",
    ),
    Guard(
        "of several copies in one call the newest counts", "stores/postgres/copying.py",
        "if before is not None and not _replaces(summary, before):", "if False:",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "of several copies in one call an older one counts for nothing", "stores/postgres/copying.py",
        "newer = (summary.generation, summary.revision) > (before.generation, before.revision)", "newer = True",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "of several copies in one call none follows the end", "stores/postgres/copying.py",
        "return newer and not before.has_ended", "return newer",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a dead letter is stored once", "stores/postgres/copying.py",
        "    WHERE NOT EXISTS (SELECT 1 FROM letters WHERE letters.mark = new.mark)\n"
        "    ORDER BY place ON CONFLICT DO NOTHING\n",
        "    ORDER BY place\n",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a key that comes from two at once is claimed once", "stores/postgres/intents.py",
        "AS new (key) ORDER BY key\n    ON CONFLICT DO NOTHING\n", "AS new (key) ORDER BY key\n",
        "tests/postgres/test_concurrency.py",
    ),
    Guard(
        "who renews a key locks it", "stores/postgres/intents.py",
        " ORDER BY key FOR UPDATE\n", " ORDER BY key\n",
        "tests/postgres/test_concurrency.py",
    ),
    Guard(
        "who controls an execution locks its row", "stores/postgres/executions.py",
        "WHERE id = %s FOR UPDATE", "WHERE id = %s",
        "tests/postgres/test_concurrency.py",
    ),
    Guard(
        "what isn't triggerable isn't triggered (PostgreSQL)", "stores/postgres/executions.py",
        "            check_triggerable(execution_id, state, waits=state == WAITS)\n", "",
        'tests/contract/test_waiting.py -k "redis and not cluster"',
    ),
    Guard(
        "what can't be controlled isn't (PostgreSQL)", "stores/postgres/executions.py",
        "            check_controllable(\n"
        "                execution_id, state, request, waits=state == WAITS, last_request=last_request\n"
        "            )\n", "",
        'tests/contract/test_cold.py -k "redis and not cluster"',
    ),
    Guard(
        "an intent says that its execution has ended", "stores/postgres/executions.py",
        "            if state in EXECUTION_ENDS:  # or", "            if False:  # or",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a row that hasn't ended overrules no record", "stores/postgres/executions.py",
        "if state not in EXECUTION_ENDS or record.state == state:", "if record.state == state:",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a pause that was fulfilled is no control request", "stores/postgres/executions.py",
        "(wish = 'pause' AND state <> 'PAUSED')", "wish = 'pause'",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a resume that was fulfilled is no control request", "stores/postgres/executions.py",
        "(wish = 'resume' AND state = 'PAUSED')", "wish = 'resume'",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "what a copy came of is not started", "stores/postgres/executions.py",
        " AND generation = 0 ORDER BY n", " ORDER BY n",
        "tests/postgres/test_copies.py",
    ),
    Guard(
        "a key is revoked once (PostgreSQL)", "stores/postgres/books.py",
        " AND revoked_at IS NULL", "",
        'tests/contract/test_books.py -k "redis and not cluster"',
    ),
    Guard(
        "a dead letter is closed once (PostgreSQL)", "stores/postgres/dead_letters.py",
        " AND closed IS NULL", "",
        'tests/contract/test_dead_letters.py -k "redis and not cluster"',
    ),
    Guard(
        "an alias of a version that isn't there is refused", "stores/postgres/definitions.py",
        " AND version = wanted AND NOT deleted)", " AND NOT deleted)",
        'tests/contract/test_definitions.py -k "redis and not cluster"',
    ),
    Guard(
        "an alias of a workflow that isn't there is refused", "stores/postgres/definitions.py",
        "    WHERE NOT EXISTS (SELECT 1 FROM workflows WHERE name = %s AND version = wanted AND NOT deleted)\n",
        "    WHERE false AND NOT EXISTS (SELECT 1 FROM workflows WHERE name = %s)\n",
        'tests/contract/test_definitions.py -k "redis and not cluster"',
    ),
    Guard(
        "the schema is looked at before a database is used", "stores/postgres/cold.py",
        "        check_schema(found[0][0] if found else None, where)\n", "",
        "tests/postgres/test_migrating.py",
    ),
    Guard(
        "a database that was emptied is refused", "stores/postgres/cold.py",
        'if not meta.keys() >= {"store_id", "partitions"}:', "if False:",
        "tests/postgres/test_migrating.py",
    ),
    Guard(
        "another number of partitions is refused", "stores/postgres/cold.py",
        "        check_partitions(self._wanted, self.partitions, where)\n", "",
        "tests/redis/test_scaled.py tests/postgres/test_migrating.py",
    ),
    Guard(
        "a database without a schema is refused", "stores/postgres/schema.py",
        "    if found is None:\n        raise", "    if found is None:\n        return\n        raise",
        "tests/postgres/test_migrating.py",
    ),
    Guard(
        "a newer schema is refused", "stores/postgres/schema.py",
        "if found > SCHEMA:", "if False:",
        "tests/postgres/test_migrating.py",
    ),
    Guard(
        "an older schema is refused", "stores/postgres/schema.py",
        "if found < SCHEMA:", "if False:",
        "tests/postgres/test_migrating.py",
    ),
    Guard(
        "a server that is too old is not migrated", "stores/postgres/migrating.py",
        "    _check_server(connection, where)\n", "",
        "tests/postgres/test_migrating.py",
    ),
    Guard(
        "a newer schema is not migrated", "stores/postgres/migrating.py",
        "        check_schema(found, where)\n", "        pass\n",
        "tests/postgres/test_migrating.py",
    ),
    Guard(
        "a migration leaves the number of partitions", "stores/postgres/migrating.py",
        "        check_partitions(partitions, int(rows[0][0]), where)\n", "",
        "tests/postgres/test_migrating.py",
    ),
    Guard(
        "what a retry may need is not purged", "stores/postgres/retention.py",
        "NOT EXISTS (\n      SELECT 1 FROM executions AS retry WHERE retry.retry_of = old.id\n",
        "NOT EXISTS (\n      SELECT 1 FROM executions AS retry WHERE false AND retry.retry_of = old.id\n",
        "tests/postgres/test_retention.py",
    ),
    Guard(
        "only what waits for its trigger is purged by its age", "stores/postgres/retention.py",
        "OR {{name}}.state = 'PENDING' AND", "OR {{name}}.ended_at IS NULL AND",
        "tests/contract/test_forgetting.py -k redis",
    ),
    Guard(
        "what is triggered while it is about to be purged stays", "stores/postgres/retention.py",
        "AND {MAY_GO} FOR UPDATE OF old", "AND {MAY_GO}",
        "tests/postgres/test_retention.py",
    ),
    Guard(
        "a blob that is used is not purged", "stores/postgres/retention.py",
        'UNUSED = "NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.key = blobs.key)"', 'UNUSED = "true"',
        "tests/postgres/test_retention.py",
    ),
    Guard(
        "an object store that can't be used is refused at opening", "stores/scaled.py",
        "                await self.objects.check()\n", "                pass\n",
        "tests/postgres/test_object_retention.py",
    ),
    Guard(
        "an object is deleted while its row is locked", "stores/postgres/retention.py",
        "        async with database.transaction(SLOW_SECONDS) as connection:\n            gone.update(",
        "        async with database.connection(SLOW_SECONDS) as connection:\n            gone.update(",
        "tests/postgres/test_object_retention.py",
    ),
]  # fmt: skip
