"""Fences and refusals of the stores in memory and on SQLite, and of what all stores share."""

from __future__ import annotations

from scripts.guards.guard import Guard

GUARDS = [
    Guard(
        "a commit needs the lease's token (memory)", "stores/memory.py",
        "if not self._holds(commit.partition, commit.token) or place", "if place",
        "tests/contract/test_leases.py",
    ),
    Guard(
        "a commit needs the current commit number (memory)", "stores/memory.py",
        " or place.commit_number != commit.commit_number:", ":",
        "tests/contract/test_leases.py",
    ),
    Guard(
        "a commit needs the lease's token (SQLite)", "stores/sqlite/hot.py",
        "if not token or token != self._lease.token:", "if False:",
        "tests/contract/test_leases.py",
    ),
    Guard(
        "a commit needs the current commit number (SQLite)", "stores/sqlite/hot.py",
        "if under_way or commit.commit_number != self._lease.commit_number:", "if False:",
        "tests/contract/test_leases.py",
    ),
    Guard(
        "a live owner's lease is refused to others", "stores/memory.py",
        "if place.lease is not None and place.expires_at > self.now() and place.lease.owner != owner:", "if False:",
        "tests/contract/test_leases.py",
    ),
    Guard(
        "only the owner reaps", "stores/memory.py",
        "        self._store.check(partition, token)\n", "",
        "tests/contract/test_task_queue.py",
    ),
    Guard(
        "only the holder of a task reports it", "stores/task_queue.py",
        "if holder is not None and holder[0] == worker_id:\n                del",
        "if holder is not None:\n                del",
        "tests/contract/test_task_queue.py",
    ),
    Guard(
        "a stopped task is not handed out", "stores/task_queue.py",
        "        if key in self._stopped:\n            self._stopped.discard(key)\n            return False\n", "",
        "tests/contract/test_task_queue.py",
    ),
    Guard(
        "a task of a paused execution is not handed out", "stores/task_queue.py",
        "if self._on_hold and task.execution_id in self._on_hold:", "if False:",
        "tests/contract/test_task_queue.py",
    ),
    Guard(
        "a task is in the queue once", "stores/task_queue.py",
        "if key in self._queued or key in self._held:\n                continue", "if False:\n                continue",
        "tests/contract/test_task_queue.py",
    ),
    Guard(
        "a worker that gets a task is counted, also one that was declared dead", "stores/task_queue.py",
        "                self._beats.setdefault(worker_id, 0)\n                return tasks",
        "                return tasks",
        "tests/contract/test_task_queue.py",
    ),
    Guard(
        "a claim is noted before a handler is called", "stores/sqlite/hot.py",
        "        self._claims.add(key)\n", "        del key\n",
        "tests/contract/test_claims.py",
    ),
    Guard(
        "a claim is struck off only when its outcome is on disk", "stores/sqlite/hot.py",
        "        self.queue.settled(self._inbox.trim(commit.position))\n",
        "        self._inbox.trim(commit.position)\n",
        "tests/contract/test_claims.py",
    ),
    Guard(
        "one process per file", "stores/sqlite/lock.py",
        "            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)", "            pass",
        "tests/contract/test_sqlite.py",
    ),
    Guard(
        "another schema is refused", "stores/sqlite/preparing.py",
        "if version != SCHEMA_VERSION:", "if False:",
        "tests/contract/test_sqlite.py",
    ),
    Guard(
        "a key that comes back with another request is refused", "stores/idempotency.py",
        "if key_use.request_hash != request_hash:", "if False:",
        "tests/contract/test_idempotency.py",
    ),
    Guard(
        "an execution that has ended can't be controlled", "stores/base.py",
        "if state in EXECUTION_ENDS:", "if False:",
        "tests/contract/test_cold.py",
    ),
    Guard(
        "what is decided after a commit began is not part of it", "stores/codec.py",
        "commands.record = copy(commands.record)", "pass",
        "tests/orchestrator/test_committer.py",
    ),
    Guard(
        "nobody starts an execution twice by two triggers", "stores/base.py",
        "    if not waits:", "    if False:",
        "tests/contract/test_waiting.py",
    ),
    Guard(
        "an old lease in memory is not renewed", "stores/memory.py",
        "        if not self._holds(lease.partition, lease.token):\n            return False\n", "",
        "tests/contract/test_leases.py -k memory",
    ),
    Guard(
        "an old lease in memory releases nothing", "stores/memory.py",
        "if self._holds(lease.partition, lease.token):\n            self._partitions",
        "if True:\n            self._partitions",
        "tests/contract/test_leases.py -k memory",
    ),
    Guard(
        "a check in memory goes by the token", "stores/memory.py",
        "        if not self._holds(partition, token):", "        if False:",
        "tests/contract/test_task_queue.py -k memory",
    ),
    Guard(
        "a lease in memory is known by its token", "stores/memory.py",
        "return lease is not None and lease.token == token", "return lease is not None",
        "tests/contract/test_leases.py -k memory",
    ),
    Guard(
        "a live owner's lease on SQLite is refused to others", "stores/sqlite/hot.py",
        "if lease.token and lease.owner != owner and self._expires_at > self.now():", "if False:",
        "tests/contract/test_leases.py -k sqlite",
    ),
    Guard(
        "an owner on SQLite may take its own lease again", "stores/sqlite/hot.py",
        "if lease.token and lease.owner != owner and", "if lease.token and",
        "tests/contract/test_leases.py -k sqlite",
    ),
    Guard(
        "an old lease on SQLite is not renewed", "stores/sqlite/hot.py",
        "        if lease.token != self._lease.token:\n            return False\n", "",
        "tests/contract/test_leases.py -k sqlite",
    ),
    Guard(
        "an old lease on SQLite releases nothing", "stores/sqlite/hot.py",
        "if lease.token == self._lease.token:", "if True:",
        "tests/contract/test_leases.py -k sqlite",
    ),
    Guard(
        "every commit to SQLite is checked", "stores/sqlite/hot.py",
        "        self._check(commit)\n", "",
        "tests/contract/test_leases.py -k sqlite",
    ),
    Guard(
        "a commit to SQLite is checked for its token", "stores/sqlite/hot.py",
        "        self.check(commit.token)\n", "",
        "tests/contract/test_leases.py -k sqlite",
    ),
    Guard(
        "a commit to SQLite waits for the one under way", "stores/sqlite/hot.py",
        "if under_way or commit.commit_number", "if commit.commit_number",
        "tests/contract/test_leases.py -k sqlite",
    ),
    Guard(
        "only the owner reaps on SQLite", "stores/sqlite/hot.py",
        "        self._store.check(token)\n", "",
        "tests/contract/test_task_queue.py -k sqlite",
    ),
    Guard(
        "a file that is in use is refused with who uses it", "stores/sqlite/lock.py",
        "            self._lock()\n        except OSError:",
        "            self._lock()\n        except FileNotFoundError:",
        "tests/contract/test_sqlite.py",
    ),
    Guard(
        "a file is locked by its identity", "stores/sqlite/lock.py",
        "        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)\n", "        pass\n",
        "tests/faults/test_files.py",
    ),
    Guard(
        "a file that this process has open is not opened again", "stores/sqlite/lock.py",
        "        if identity_of(self._path) in _in_use:\n", "        if False:\n",
        "tests/faults/test_files.py",
    ),
    Guard(
        "the file that is locked is the one of that name", "stores/sqlite/lock.py",
        "        if identity_of(self._path) == self.identity:\n", "        if True:\n",
        "tests/faults/test_files.py",
    ),
    Guard(
        "a file is used by one of its names", "stores/sqlite/lock.py",
        "        if recorded is not None and identity_of(recorded) == identity_of(path):\n", "        if False:\n",
        "tests/faults/test_files.py",
    ),
    Guard(
        "what is answered is in a file that is there", "stores/sqlite/writer.py",
        "gone = self._look() if any(each.is_answered for each in batch) else None", "gone = None",
        "tests/faults/test_files.py",
    ),
    Guard(
        "a file that is gone is noticed without a write", "stores/sqlite/watching.py",
        "        while not self._ended.wait(LOOK_SECONDS):\n", "        while False:\n",
        "tests/faults/test_files.py",
    ),
    Guard(
        "nothing is answered from a file that is gone", "stores/sqlite/writer.py",
        '            raise NotOpen(f"{self._path} has been closed; nothing can be written to it any more")\n'
        "        self._raise_if_gone()\n",
        '            raise NotOpen(f"{self._path} has been closed; nothing can be written to it any more")\n',
        "tests/faults/test_files.py",
    ),
    Guard(
        "a schema is looked at before a file is used", "stores/sqlite/preparing.py",
        "        _check_schema(connection, path)\n", "",
        "tests/contract/test_sqlite.py",
    ),
    Guard(
        "a file that an earlier version left half-opened is mended", "stores/sqlite/preparing.py",
        '    connection.execute("DROP TABLE IF EXISTS stretch")\n', "",
        "tests/contract/test_sqlite.py",
    ),
    Guard(
        "a file is made or upgraded as a whole", "stores/sqlite/preparing.py",
        '        connection.execute("BEGIN IMMEDIATE")\n        _check_schema(connection, path)\n'
        '        _create_schema(connection)\n        connection.execute("COMMIT")\n',
        "        _check_schema(connection, path)\n        _create_schema(connection)\n",
        "tests/contract/test_sqlite.py",
    ),
    Guard(
        "a store on SQLite keeps its id", "stores/sqlite/preparing.py",
        "INSERT OR IGNORE INTO meta VALUES ('store_id', ?)", "INSERT OR REPLACE INTO meta VALUES ('store_id', ?)",
        "tests/contract/test_sqlite.py",
    ),
    Guard(
        "a store on SQLite keeps its schema's number", "stores/sqlite/preparing.py",
        "INSERT OR IGNORE INTO meta VALUES ('schema', ?)", "INSERT INTO meta VALUES ('schema', ?)",
        "tests/contract/test_sqlite.py",
    ),
    Guard(
        "a purge leaves what isn't a store of ours", "stores/sqlite/purging.py",
        "        if row is None or str(row[0]) not in (SCHEMA_VERSION, *UPDATES):", "        if row is None:",
        "tests/contract/test_sqlite_purging.py",
    ),
    Guard(
        "only what waits for its trigger is forgotten by its age (SQLite)", "stores/sqlite/forgetting.py",
        "OR {name}.state = 'PENDING' AND", "OR {name}.ended_at IS NULL AND",
        "tests/contract/test_forgetting.py -k sqlite",
    ),
    Guard(
        "only what has ended is forgotten by its end (memory)", "stores/memory_cold.py",
        "        return record.state in EXECUTION_ENDS and (", "        return (",
        "tests/contract/test_forgetting.py -k memory",
    ),
    Guard(
        "a purge leaves what a retry may need", "stores/sqlite/forgetting.py",
        "NOT EXISTS (\n      SELECT 1 FROM executions AS retry WHERE retry.retry_of = old.id\n",
        "NOT EXISTS (\n      SELECT 1 FROM executions AS retry WHERE false AND retry.retry_of = old.id\n",
        "tests/contract/test_sqlite_purging.py",
    ),
    Guard(
        "a key is revoked once (SQLite)", "stores/sqlite/books.py",
        " AND revoked_at IS NULL", "",
        "tests/contract/test_books.py -k sqlite",
    ),
    Guard(
        "a dead letter is closed once (SQLite)", "stores/sqlite/dead_letters.py",
        "WHERE id = ? AND closed IS NULL", "WHERE id = ?",
        "tests/contract/test_dead_letters.py -k sqlite",
    ),
    Guard(
        "what isn't triggerable isn't triggered (SQLite)", "stores/sqlite/executions.py",
        "            check_triggerable(execution_id, state, waits=state == WAITS)\n", "",
        "tests/contract/test_waiting.py -k sqlite",
    ),
    Guard(
        "what can't be controlled isn't (SQLite)", "stores/sqlite/executions.py",
        "            check_controllable(\n"
        "                execution_id, state, request, waits=state == WAITS, last_request=last_request\n"
        "            )\n", "",
        "tests/contract/test_cold.py -k sqlite",
    ),
    Guard(
        "what isn't triggerable isn't triggered (memory)", "stores/memory_cold.py",
        "        check_triggerable(execution_id, self._state(execution_id), waits=execution_id in self._waiting)\n",
        "",
        "tests/contract/test_waiting.py -k memory",
    ),
    Guard(
        "what can't be controlled isn't (memory)", "stores/memory_cold.py",
        "        check_controllable(\n"
        "            execution_id, self._state(execution_id), request, waits=waits, last_request=last_request\n"
        "        )\n", "",
        "tests/contract/test_cold.py -k memory",
    ),
    Guard(
        "what has ended is not to be started (memory)", "stores/memory_cold.py",
        "            and codec.decode_record(self._hot.records[name]).state not in EXECUTION_ENDS\n", "",
        "tests/contract/test_cold.py -k memory",
    ),
    Guard(
        "one that waits can only be cancelled", "stores/base.py",
        'if waits and request != "cancel":', "if False:",
        'tests/contract/test_waiting.py -k "memory or sqlite"',
    ),
    Guard(
        "a cancel is not taken back by another control request", "stores/base.py",
        'if last_request == "cancel" and request != "cancel":', "if False:",
        'tests/contract/test_cold.py -k "memory or sqlite"',
    ),
    Guard(
        "what is paused can't be paused again", "stores/base.py",
        'if request == "pause" and pausing:', "if False:",
        'tests/contract/test_cold.py -k "memory or sqlite"',
    ),
    Guard(
        "what isn't paused can't be resumed", "stores/base.py",
        'if request == "resume" and not pausing:', "if False:",
        'tests/contract/test_cold.py -k "memory or sqlite"',
    ),
    Guard(
        "a change of another schema is refused", "stores/codec.py",
        "if part.schema not in READABLE:", "if False:",
        "tests/redis/test_executions.py",
    ),
    Guard(
        "a change that can't be read is refused", "stores/codec.py",
        '        raise SchemaMismatch(f"a stored change can\'t be read: {error}") from error', "        raise",
        "tests/redis/test_executions.py",
    ),
    Guard(
        "a message that can't be read is refused", "stores/codec.py",
        '        raise SchemaMismatch(f"a message can\'t be read: {error}") from error', "        raise",
        "tests/redis/test_inbox.py",
    ),
    Guard(
        "a held task that is stopped is off its worker's list", "stores/task_queue.py",
        "            if key in self._held:\n                del", "            if False:\n                del",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "a queued task that is stopped is remembered", "stores/task_queue.py",
        "            elif key in self._queued:\n                self._stopped",
        "            elif False:\n                self._stopped",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "only what is in the queue is remembered as stopped", "stores/task_queue.py",
        "            elif key in self._queued:\n                self._stopped",
        "            else:\n                self._stopped",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "a worker's list is its own", "stores/task_queue.py",
        "for holder, task in self._held.values() if holder == worker_id]", "for holder, task in self._held.values()]",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "only the holder of a task says that it started", "stores/task_queue.py",
        "[event for event in events if self._is_held(worker_id, event)]", "list(events)",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "a worker is told what it no longer holds", "stores/task_queue.py",
        "[stop for stop in held if not self._is_held(worker_id, stop)]", "[]",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "reaping in memory asks who owns the partition", "stores/memory.py",
        "        self.check_owner(partition, token)\n        return self.lose(", "        return self.lose(",
        "tests/contract/test_task_queue.py -k memory",
    ),
    Guard(
        "reaping on SQLite asks who owns the store", "stores/sqlite/hot.py",
        "        self.check_owner(partition, token)\n        return self.lose(", "        return self.lose(",
        "tests/contract/test_task_queue.py -k sqlite",
    ),
    Guard(
        "only the owner takes waiting tasks back", "stores/task_queue.py",
        "        self.check_owner(partition, token)\n        mine, now", "        mine, now",
        'tests/contract/test_handlers.py -k "memory or sqlite"',
    ),
    Guard(
        "a worker gets no task in memory of a handler that it doesn't have", "stores/task_queue.py",
        "if handlers is not None and task.handler not in handlers:", "if False:",
        'tests/contract/test_handlers.py -k "memory or sqlite"',
    ),
    Guard(
        "a worker that leaves hands back only what it holds", "stores/task_queue.py",
        "        back = [task for task in tasks if self._is_held(worker_id, task)]\n"
        "        for task in back:\n            del self._held[key_of(task)]",
        "        back = list(tasks)\n        for task in back:\n            self._held.pop(key_of(task), None)",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "a dead worker loses its own tasks only", "stores/task_queue.py",
        "if holder == worker_id and mine(key[0])]", "if mine(key[0])]",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "a reaper takes tasks of its own partition only", "stores/task_queue.py",
        "if holder == worker_id and mine(key[0])]", "if holder == worker_id]",
        "tests/contract/test_task_queue.py -k memory",
    ),
    Guard(
        "a worker that holds tasks elsewhere stays known", "stores/task_queue.py",
        "if not any(holder == worker_id for holder, _ in self._held.values()):", "if True:",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "what was queued is known", "stores/task_queue.py",
        "return key in self._queued or key in self._held", "return key in self._held",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "what is held is known", "stores/task_queue.py",
        "return key in self._queued or key in self._held", "return key in self._queued",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "a task is held by one worker", "stores/task_queue.py",
        "return holder is not None and holder[0] == worker_id", "return holder is not None",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "what may not run is not handed out", "stores/task_queue.py",
        "if self._may_run(key, task):", "if True:",
        'tests/contract/test_task_queue.py -k "memory or sqlite"',
    ),
    Guard(
        "what ended is known by its state", "stores/split.py",
        "return self.state in EXECUTION_ENDS", "return False",
        "tests/orchestrator/test_transfer.py",
    ),
]  # fmt: skip
