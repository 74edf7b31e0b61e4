"""Conditions that refuse nothing, each with the reason why it is no guard."""

from __future__ import annotations

LUA = "stores/redis/lua/"
CHOOSES = "chooses what is asked for: who may ask was checked before"
READS = "reads a text or a number of MessagePack by its first byte; what is none of them fails on its own"
SAVES = "saves work: without it the same happens, more slowly"

HARMLESS: dict[tuple[str, str], str] = {
    ("api/window.lua", "amount > 0"): "a look needn't prolong the window; it would do no harm",
    (
        LUA + "attend.lua",
        "ARGV[1] ~= ''",
    ): "who only looks says so for 0 ms, and would be gone at once",
    (LUA + "beat.lua", "ARGV[2]"): "chooses between a heartbeat and a farewell",
    (LUA + "commit.lua", "not known[stream]"): SAVES,
    (
        LUA + "commit.lua",
        "redis.call('SADD', base .. 'queues', stream) == 1",
    ): "a group is made once: Redis refuses it twice",
    (LUA + "commit.lua", "string.sub(stream, 1, 2) ~= '0:'"): SAVES,
    (
        LUA + "commit.lua",
        "redis.call('RPUSH', base .. 'execution:' .. id, ARGV[at + 1]) == 1",
    ): SAVES,
    (LUA + "commit.lua", "tasks > 0 and redis.call('SCARD', base .. 'held') > 0"): SAVES,
    (LUA + "commit.lua", "some_paused"): SAVES,
    (
        LUA + "commit.lua",
        "execution",
    ): "saves work: a task that isn't set aside here is so when it is fetched",
    (LUA + "commit.lua", "id"): "ends when there is no further place to look in",
    (
        LUA + "commit.lua",
        "is_gone and not id and redis.call('GET', base .. 'diverted:' .. name)",
    ): "saves a look: what is there, or was handed back, has no other place",
    (
        LUA + "commit.lua",
        "old ~= ''",
    ): "one that never had an entry has no place to be looked for from",
    (LUA + "commit.lua", "ended > 0"): SAVES,
    (LUA + "commit.lua", "redis.call('SCARD', base .. 'held') > 0"): SAVES,
    (LUA + "commit.lua", "redis.call('SREM', base .. 'held', ARGV[i]) == 1"): SAVES,
    (LUA + "commit.lua", "handed_out > 0"): "a worker that is woken for nothing waits again",
    (
        LUA + "fetch.lua",
        "not fine",
    ): "the error's text is the id of no paused execution, so that the next part says the same",
    (LUA + "fetch.lua", "not got"): "ends the loop when nothing is left",
    (LUA + "fetch.lua", "got.err"): "as the part before it: nothing was ever handed out there",
    (LUA + "fetch.lua", "not got[1]"): "as the part before it",
    (LUA + "fetch.lua", "streams"): "chooses in which order queues are read",
    (LUA + "fetch.lua", "exist[i - 3] == 1"): SAVES,
    (
        LUA + "fetch.lua",
        "redis.call('SADD', base .. 'queues', side) == 1",
    ): "a group is made once: Redis refuses it twice",
    (
        LUA + "fetch.lua",
        "string.find(stream, '\\31', 1, true)",
    ): "an empty stream that goes is made again when needed",
    (LUA + "lease.lua", "what == 'renew'"): CHOOSES,
    (LUA + "lease.lua", "what == 'release'"): CHOOSES,
    (LUA + "lease.lua", "what == 'taken'"): CHOOSES,
    (LUA + "lease.lua", "what == 'acknowledge'"): CHOOSES,
    (LUA + "lease.lua", "what == 'wipe'"): CHOOSES,
    (LUA + "lease.lua", "what == 'restore'"): CHOOSES,
    (LUA + "lease.lua", "what == 'built'"): CHOOSES,
    (LUA + "list.lua", "left > 0"): "saves a call: Redis lists none of at most none",
    (
        LUA + "list.lua",
        "left[name] > 0 and pending(stream, '-', '+', left[name], name) or {}) do",
    ): "as the part before it",
    (
        LUA + "list.lua",
        "stream, item[1], entry and entry[2][2] or ''",
    ): "an entry without its task is listed, as nobody's",
    (
        LUA + "list.lua",
        "found.err and {} or found",
    ): "an error has no length and no parts: the same comes of it",
    (LUA + "list.lua", "count > 0"): "a worker that is woken for nothing waits again",
    (
        LUA + "read.lua",
        "left <= 0",
    ): "ends an answer that is long enough; the rest is asked for again",
    (LUA + "recall.lua", "not pending.err"): "a stream that is gone has no entry either",
    (LUA + "task.part.lua", "kind >= 0xa0"): READS,
    (LUA + "task.part.lua", "kind <= 0xbf"): READS,
    (LUA + "task.part.lua", "kind == 0xd9"): READS,
    (LUA + "task.part.lua", "kind == 0xda"): READS,
    (LUA + "task.part.lua", "kind < 0x80"): READS,
    (LUA + "task.part.lua", "0xdc and 4 or 2"): READS,
    (
        LUA + "task.part.lua",
        "error('not a text')",
    ): "without it the number after the text fails on what is no number",
    (
        "stores/postgres/creating.py",
        "ON CONFLICT DO NOTHING",
    ): "a blob is used by an execution, however often it says so",
    (
        "stores/postgres/retention.py",
        "NOT EXISTS",
    ): "counts what a purge would delete; the purge itself asks again",
    (
        "stores/postgres/retention.py",
        "state IN ('RUNNING', 'PAUSED')",
    ): "looks for the oldest, and lets nothing in or out",
    ("stores/redis/fleet.py", "worker_id in counts"): "shows who lives; nothing is decided by it",
    (
        "stores/redis/queue.py",
        "claim[0] != worker_id",
    ): "frees memory; what isn't on its list, the script refuses",
    ("stores/redis/queue.py", "worker_id not in self._wakers"): "makes a waker once",
    (
        "stores/sqlite/forgetting.py",
        "state IN ('RUNNING', 'PAUSED')",
    ): "looks for the oldest, and lets nothing in or out",
    (
        "stores/sqlite/purging.py",
        "NOT EXISTS",
    ): "makes a table that files of earlier versions don't have",
    (
        "stores/sqlite/hot.py",
        "stored.record.state not in EXECUTION_ENDS",
    ): "what has ended needs no number in memory",
    ("stores/task_queue.py", "worker_id in self._offers"): "keeps since when a worker is there",
    (
        "stores/task_queue.py",
        "key in self._stopped",
    ): "saves work: what was stopped is dropped when it is met again",
    (
        "stores/task_queue.py",
        "key in self._claimed",
    ): "a log of what is over is only to look at, and is dropped",
    (
        "orchestrator/archiver.py",
        "summary.has_ended",
    ): "saves a look: what was said last of what has ended is all there is",
    ("orchestrator/meter.py", "run.attempt == line.attempt"): "measures; nothing is decided by it",
    ("orchestrator/rebuild.py", "built == store_id"): "says in the log why it is built again",
}
