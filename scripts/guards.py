"""Take out each guard in turn and see a test go red: `make guards`.

A guard is a refusal that a guarantee hangs on. Each is taken out in a copy of the sources; the test named beside it in
tests/guards.md must then fail. A guard whose test stays green, or whose code isn't found any more, is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SIMULATION = "tests/simulation/test_simulation.py"


class Guard(NamedTuple):
    name: str
    file: str
    code: str
    without: str
    test: str


GUARDS = [
    Guard(
        "a node changes state by the table only", "engine/execution.py",
        "if state not in NODE_TRANSITIONS[before]:", "if False:",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "an execution changes state by the table only", "engine/states.py",
        "if after not in EXECUTION_TRANSITIONS[before]:", "if False:",
        "tests/engine/test_states.py",
    ),
    Guard(
        "an execution that has ended changes no more", "engine/execution.py",
        "        if self.record.state in EXECUTION_ENDS:\n            return commands\n", "",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "a report of another attempt has no effect", "engine/execution.py",
        "or event.attempt != run.attempt", "or False",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "a report of another generation has no effect", "engine/execution.py",
        "or event.generation != self.record.generation", "or False",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "a report about a node that isn't out has no effect", "engine/execution.py",
        "or (run.state is not QUEUED and run.state is not RUNNING)", "or False",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "no attempt after the last", "engine/execution.py",
        "if not retryable or run.attempt >= retry.max_attempts:", "if not retryable:",
        "tests/engine/test_retry.py tests/engine/test_against_model.py",
    ),
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
        "another schema is refused", "stores/sqlite/__init__.py",
        "if row and str(row[0]) != SCHEMA_VERSION:", "if False:",
        "tests/contract/test_sqlite.py",
    ),
    Guard(
        "a key that comes back with another request is refused", "stores/idempotency.py",
        "if made.request_hash != request_hash:", "if False:",
        "tests/contract/test_idempotency.py",
    ),
    Guard(
        "an execution that has ended can't be steered", "stores/base.py",
        "if state in EXECUTION_ENDS:", "if False:",
        "tests/contract/test_cold.py",
    ),
    Guard(
        "tasks of a fetch whose answer was lost are found", "worker/runtime.py",
        "self._is_cut_off = self._is_unsure = True", "self._is_cut_off = True",
        "tests/worker/test_strays.py",
    ),
    Guard(
        "an accepted execution without a start is started", "orchestrator/recovery.py",
        '[ExecutionStarted(name) for name in lost if wishes.get(name) != "cancel"]', "[]",
        SIMULATION,
    ),
    Guard(
        "a wish that nobody handled is asked for again", "orchestrator/recovery.py",
        "            if name in wishes:", "            if False:",
        "tests/orchestrator",
    ),
    Guard(
        "time in which the reaper couldn't look kills nobody", "orchestrator/reaper.py",
        "min(now - last, 2 * LOOK_SECONDS)", "now - last",
        "tests/orchestrator/test_reaper.py",
    ),
    Guard(
        "a bad execution is wrecked, not retried for ever", "orchestrator/owner.py",
        "                    await self._wreck(event.execution_id, error, now)", "                    raise",
        "tests/orchestrator/test_owner.py",
    ),
    Guard(
        "what is decided after a commit began is not part of it", "stores/codec.py",
        "commands.record = copy(commands.record)", "pass",
        "tests/orchestrator/test_committer.py",
    ),
    Guard(
        "an execution that breaks fails from what landed", "orchestrator/owner.py",
        "        await self._committer.settle()\n        await self._fail(", "        await self._fail(",
        "tests/orchestrator/test_committer.py",
    ),
    Guard(
        "a rebuilt execution is in a new generation", "orchestrator/rebuild.py",
        "begin_generation(stored.record, stored.runs.values(), stored.last_seq, generation, now)",
        "begin_generation(stored.record, stored.runs.values(), stored.last_seq, stored.record.generation, now)",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "what begins again after a loss is in a new generation", "orchestrator/rebuild.py",
        "            intent.record.generation = generation\n", "",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a hot store without its mark is built again", "orchestrator/rebuild.py",
        "if built == store_id and lease.commit_number >= known_number:", "if lease.commit_number >= known_number:",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a hot store that has gone back in time is built again", "orchestrator/rebuild.py",
        "if built == store_id and lease.commit_number >= known_number:", "if built == store_id:",
        SIMULATION,
    ),
    Guard(
        "an orchestrator remembers how far its partitions were", "orchestrator/service.py",
        "            known_number=self._numbers.get(lease.partition, 0),\n", "",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a rebuild that was broken off is begun again", "orchestrator/rebuild.py",
        "    await split.cold.put_copies(partition, number, [])\n", "",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a node that ran in a lost generation goes back by the table", "engine/rebuilding.py",
        "                check_node(run.address, run.state, after)\n", "",
        "tests/engine/test_rebuilding.py",
    ),
    Guard(
        "what is rebuilt goes on by itself", "orchestrator/rebuild.py",
        "else [Continued(name)]", "else []",
        SIMULATION,
    ),
    Guard(
        "a commit hands out no more tasks than one may", "engine/execution.py",
        " or len(commands.tasks) >= COMMIT_WEIGHT:", ":",
        "tests/engine/test_rebuilding.py",
    ),
    Guard(
        "copies come with a commit number that covers them", "orchestrator/transfer.py",
        "while not self._owner.is_at_rest and", "while False and",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "what a cold store refuses is dropped only if it takes anything else", "orchestrator/transfer.py",
        "            await self._blame_content(number, error)\n", "",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "what can't be archived stays in the hot store", "orchestrator/archiver.py",
        " and entry.execution_id not in refused\n", "\n",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "only what has ended leaves the hot store", "orchestrator/archiver.py",
        "entry.summary is not None and entry.summary.has_ended and", "entry.summary is not None and",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "a cold store that is away stops no owner", "orchestrator/loader.py",
        "if not self._is_split or not known.keys().isdisjoint(needed):", "if True:",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "a cold store that is away doesn't end an owner through its reconciler", "orchestrator/tenure.py",
        "with contextlib.suppress(StoreUnavailable):", "with contextlib.nullcontext():",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "an owner that has nothing to write proves now and then that it may", "orchestrator/owner.py",
        "return self._is_split and", "return False and",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a partition is given up only after its commit has landed", "orchestrator/tenure.py",
        "while not self.owner.is_at_rest:", "while False:",
        "tests/orchestrator/test_balance.py",
    ),
    Guard(
        "a lease is given up after everything under it has ended", "orchestrator/tenure.py",
        "            await asyncio.gather(*services, return_exceptions=True)\n", "",
        "tests/orchestrator",
    ),
    Guard(
        "an orchestrator takes no more than its share", "orchestrator/service.py",
        "for partition in kept[share:]:", "for partition in ():",
        "tests/orchestrator/test_balance.py",
    ),
    Guard(
        "an owner that can't renew its lease ends when it has run out", "orchestrator/tenure.py",
        "while loop.time() - last < self._lease_seconds:", "while True:",
        "tests/orchestrator/test_balance.py",
    ),
    Guard(
        "a start that waits in the inbox is not lost", "orchestrator/recovery.py",
        "if name not in awaited]", "]",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "a start that was handled meanwhile is not lost", "orchestrator/recovery.py",
        "unknown = await _unknown(stores, [name for name in unknown if name not in awaited])",
        "unknown = [name for name in unknown if name not in awaited]",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "an execution that has left the hot store is not lost", "orchestrator/recovery.py",
        "if each.record.state not in EXECUTION_ENDS}", "}",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "a wish that nobody handled is asked for again where tasks are kept", "orchestrator/recovery.py",
        "    events += [EVENTS[wish](name) for name, wish in wishes.items()]\n", "",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "a private address is refused", "worker/handlers/addresses.py",
        "if not self._opened(what, address, meaning, host):", "if False:",
        "tests/worker/test_addresses.py",
    ),
    Guard(
        "a metadata address is refused whatever the settings say", "worker/handlers/addresses.py",
        'if what == "metadata":', "if False:",
        "tests/worker/test_addresses.py",
    ),
    Guard(
        "what was kept is recorded, not run", "engine/execution.py",
        "if self.kept and record.state is not ExecutionState.PENDING:", "if False:",
        "tests/engine/test_kept.py",
    ),
    Guard(
        "an execution that is stopped keeps what it hadn't recorded yet", "engine/ending.py",
        "    if execution.kept:  #", "    if False:  #",
        "tests/engine/test_kept.py",
    ),
    Guard(
        "a new owner keeps what the last one hadn't recorded", "orchestrator/loader.py",
        "return bool(stored.record.kept) or stored.record.state is ExecutionState.PENDING", "return False",
        "tests/orchestrator/test_beginnings.py",
    ),
    Guard(
        "a cancel that comes before the start ends the execution", "orchestrator/owner.py",
        "MAY_BE_FIRST = (ExecutionStarted, CancelRequested)", "MAY_BE_FIRST = (ExecutionStarted,)",
        "tests/orchestrator/test_beginnings.py",
    ),
    Guard(
        "a secret is not filled in where an override stands", "engine/start.py",
        "tuple(secret for secret in secrets if secret.path[0] not in over)", "secrets",
        "tests/engine/test_overrides.py",
    ),
    Guard(
        "one retry per execution", "service/retries.py",
        "        await self._check_first(execution_id)\n        await self._add_unrecorded",
        "        await self._add_unrecorded",
        "tests/service/test_retries.py",
    ),
    Guard(
        "two retries at once make one execution", "service/retries.py",
        "NewExecution(record, execution_id, request,", "NewExecution(record, None, request,",
        "tests/service/test_retries.py",
    ),
    Guard(
        "what comes after a node that runs again runs again", "service/retry_plan.py",
        " or _after(again)", "",
        "tests/service/test_retry_plan.py",
    ),
    Guard(
        "a branch before a kept node stays not taken", "service/retry_plan.py",
        "run = untaken.get(node.address) or stored", "run = stored",
        "tests/service/test_retry_plan.py",
    ),
    Guard(
        "a stranger is refused", "api/auth.py",
        "        if not caller.scopes and needed(scope, found) != OPEN:", "        if False:",
        "tests/api/test_access.py",
    ),
    Guard(
        "a key does what its scope allows", "api/auth.py",
        "            refusal = _forbidden(scope)\n", "            refusal = None\n",
        "tests/api/test_access.py",
    ),
    Guard(
        "a foreign page can't drive a local service", "api/auth.py",
        "        if _comes_from_elsewhere(scope):", "        if False:",
        "tests/api/test_access.py",
    ),
    Guard(
        "a name that was made to point here is refused", "api/auth.py",
        "if len(hosts) != 1 or not _LOCAL_HOST.fullmatch(hosts[0]):", "if False:",
        "tests/api/test_access.py",
    ),
    Guard(
        "a route that nobody gave a scope stops the start", "api/access.py",
        "            if rule is None:\n                raise RouteMissing",
        "            if rule is None:\n                continue\n                raise RouteMissing",
        "tests/api/test_access.py",
    ),
    Guard(
        "a revoked key is no key", "service/keys.py",
        "key is not None and key.revoked_at is None else None", "key is not None else None",
        "tests/api/test_keys.py",
    ),
    Guard(
        "what is over the rate limit is refused", "api/limits.py",
        "app = self._app if let_in else _refusal(limit, kind, seconds)", "app = self._app",
        "tests/api/test_rate_limit.py",
    ),
    Guard(
        "nobody starts an execution twice by two triggers", "stores/base.py",
        "    if not waits:", "    if False:",
        "tests/contract/test_waiting.py",
    ),
    Guard(
        "a body that is too large is not read", "api/bodies.py",
        "            if size > self._most:\n                self._too_large()",
        "            if False:\n                self._too_large()",
        "tests/api/test_documents.py",
    ),
    Guard(
        "a commit to Redis needs the lease's token", "stores/redis/lua/commit.lua",
        "if now[1] ~= ARGV[1] then", "if false then",
        "tests/contract/test_leases.py -k redis",
    ),
    Guard(
        "a commit to Redis expects the current commit number", "stores/redis/lua/commit.lua",
        "if (now[2] or '0') ~= ARGV[2] then", "if false then",
        "tests/contract/test_leases.py -k redis",
    ),
    Guard(
        "a live owner's partition in Redis is refused to others", "stores/redis/lua/acquire.lua",
        "if lease[2] and lease[1] ~= ARGV[1] and left > 0 and left <= tonumber(lease[7] or '0') then", "if false then",
        "tests/contract/test_leases.py -k redis",
    ),
    Guard(
        "keys of something else in Redis are refused", "stores/redis/lua/acquire.lua",
        "if found ~= 'none' and found ~= wanted then", "if false then",
        "tests/redis/test_server.py",
    ),
    Guard(
        "only the holder of a lease in Redis renews, releases, archives or rebuilds", "stores/redis/lua/lease.lua",
        "if redis.call('HGET', lease, 'token') ~= ARGV[1] then", "if false then",
        "tests/contract/test_leases.py tests/redis/test_sides.py",
    ),
    Guard(
        "a reaper in Redis whose lease has moved on takes nothing", "stores/redis/lua/report.lua",
        "if ARGV[1] ~= '' and redis.call('HGET', lease, 'token') ~= ARGV[1] then", "if false then",
        "tests/contract/test_task_queue.py -k redis",
    ),
    Guard(
        "only the worker on whose list in Redis a task is reports it", "stores/redis/lua/report.lua",
        "if not mine.err and #mine > 0 and not", "if not",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "a task is reported once, also twice in one call", "stores/redis/lua/report.lua",
        " and not (is_over and seen[stream .. id])", "",
        "tests/contract/test_task_queue.py -k redis",
    ),
    Guard(
        "a worker is told which of its tasks in Redis are gone", "stores/redis/lua/list.lua",
        "    if not is_mine(ARGV[i], ARGV[i + 1]) then\n      answer", "    if false then\n      answer",
        "tests/contract/test_task_queue.py -k redis",
    ),
    Guard(
        "only what a worker has in Redis does it hand back", "stores/redis/lua/list.lua",
        "local entry = is_mine(stream, id) and redis.call", "local entry = redis.call",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "a worker that holds tasks is not forgotten", "stores/redis/lua/list.lua",
        "if #pending(stream, '-', '+', 1, worker) == 0 then", "if true then",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "tasks of a paused execution are set aside", "stores/redis/lua/fetch.lua",
        "if not (some_held and set_aside(key, stream, entry)) then", "if true then",
        "tests/contract/test_task_queue.py -k redis",
    ),
    Guard(
        "a stop follows a task that was handed back", "stores/redis/lua/commit.lua",
        " and redis.call('GET', base .. 'moved:' .. ARGV[at] .. ':' .. id)", " and nil",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "a Redis of another store is refused", "stores/scaled.py",
        "if store_id != self.cold.store_id:", "if False:",
        "tests/redis/test_scaled.py",
    ),
    Guard(
        "a Redis of another layout is refused", "stores/scaled.py",
        "if layout != str(keys.LAYOUT):", "if False:",
        "tests/redis/test_scaled.py",
    ),
    Guard(
        "a Redis that throws data away is refused", "stores/redis/server.py",
        'if found and found[1] != b"noeviction":', "if False:",
        "tests/redis/test_server.py",
    ),
    Guard(
        "news that cross an empty fetch are not lost", "stores/redis/waking.py",
        " and self._news[partition] == news", "",
        "tests/redis/test_waking.py",
    ),
    Guard(
        "a place in the feed behind which something was trimmed is refused", "stores/redis/events.py",
        "if after > 0 and entries and _before(entries[0]) > after:", "if False:",
        "tests/redis/test_feed.py",
    ),
    Guard(
        "a task that a fetch took and nobody waited for goes back", "stores/redis/queue.py",
        "            taking.add_done_callback(lambda done: self._give_back(partition, worker_id, done))\n", "",
        "tests/redis/test_tasks.py",
    ),
]  # fmt: skip


def problem(guard: Guard) -> str | None:
    """What is wrong with this guard; None if a test goes red without it."""
    with tempfile.TemporaryDirectory(prefix="penstock-guard-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        path = source / "penstock" / guard.file
        text = path.read_text(encoding="utf-8")
        if text.count(guard.code) != 1:
            return f"its code stands {text.count(guard.code)} times in {guard.file}"
        path.write_text(text.replace(guard.code, guard.without), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout", "60"]
        environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*command, *guard.test.split()], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    return None if done.returncode == 1 else f"{guard.test} stays green (exit {done.returncode})"


def documented() -> set[str]:
    rows = (ROOT / "tests" / "guards.md").read_text(encoding="utf-8").splitlines()
    return {row.split("|")[1].strip() for row in rows if row.startswith("| ") and not row.startswith("| guard")}


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [guard for guard in GUARDS if wanted in guard.name]
    bad = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for guard, wrong in zip(chosen, pool.map(problem, chosen), strict=True):
            bad += wrong is not None
            print(f"{'RED  ' if wrong is None else 'WRONG'} {guard.name}" + (f": {wrong}" if wrong else ""), flush=True)
    for name in documented() ^ {guard.name for guard in GUARDS}:
        bad += 1
        print(f"WRONG {name}: only in one of tests/guards.md and scripts/guards.py")
    print(f"{len(chosen)} guards taken out, {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
