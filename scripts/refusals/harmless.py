"""Conditions that refuse nothing, each with the reason why it is no guard."""

from __future__ import annotations

from typing import NamedTuple

from scripts.patterns import Location, Sql


class Excuse(NamedTuple):
    file: str
    """Under src/penstock."""
    at: str
    """As in a guard."""
    pattern: str
    reason: str

    @property
    def location(self) -> Location:
        return Location(self.file, self.at, self.pattern)


LUA = "stores/redis/lua/"
CHOOSES = "chooses what is asked for: who may ask was checked before"
READS = "reads MessagePack by its first byte; what is neither text nor number fails on its own"
SAVES = "saves work: without it the same happens, more slowly"

HARMLESS = [
    Excuse(
        "engine/loops.py",
        at="advance",
        pattern="_holds(execution, region)",
        reason="a loop's condition is what its document asks for",
    ),
    Excuse(
        "engine/outputs.py",
        at="ItemOutputs.address",
        pattern="_ in owner.region.plan.body.numbers",
        reason="tells a node from an item; either has a value",
    ),
    Excuse(
        LUA + "rate_limit.lua",
        at="",
        pattern="amount > 0",
        reason="a look needn't prolong the window; it would do no harm",
    ),
    Excuse(
        LUA + "announce.lua",
        at="",
        pattern="ARGV[1] ~= ''",
        reason="who only looks says so for 0 ms, and would be gone at once",
    ),
    Excuse(
        LUA + "beat.lua",
        at="",
        pattern="if ARGV[2] then",
        reason="chooses between a heartbeat and leaving",
    ),
    Excuse(
        LUA + "commit.lua",
        at="enqueue",
        pattern="not known[stream]",
        reason=SAVES,
    ),
    Excuse(
        LUA + "commit.lua",
        at="enqueue",
        pattern="redis.call('SADD', ...) == 1",
        reason="a group is made once: Redis refuses it twice",
    ),
    Excuse(
        LUA + "commit.lua",
        at="enqueue",
        pattern="string.sub(stream, ...) ~= '0:'",
        reason=SAVES,
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="redis.call('RPUSH', ...) == 1",
        reason=SAVES,
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="tasks > 0 and redis.call('SCARD', ...) > 0",
        reason=SAVES,
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="if some_paused then",
        reason=SAVES,
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="if execution and",
        reason="saves work: a task that isn't set aside here is so when it is fetched",
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="while id do",
        reason="ends when there is no further location to look in",
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="is_gone and not id and redis.call('GET', ...)",
        reason="saves a look: what is there, or was handed back, has no other location",
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="old ~= ''",
        reason="one that never had an entry has no location to be looked for from",
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="ended > 0",
        reason=SAVES,
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="if redis.call('SCARD', ...) > 0",
        reason=SAVES,
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="redis.call('SREM', ...) == 1",
        reason=SAVES,
    ),
    Excuse(
        LUA + "commit.lua",
        at="",
        pattern="handed_out > 0",
        reason="a worker that is woken for nothing waits again",
    ),
    Excuse(
        LUA + "fetch.lua",
        at="set_aside",
        pattern="not fine",
        reason="the error's text is the id of no paused execution: the next part says the same",
    ),
    Excuse(
        LUA + "fetch.lua",
        at="take",
        pattern="if not got or",
        reason="ends the loop when nothing is left",
    ),
    Excuse(
        LUA + "fetch.lua",
        at="take",
        pattern="got.err",
        reason="as the part before it: nothing was ever handed out there",
    ),
    Excuse(
        LUA + "fetch.lua",
        at="take",
        pattern="not got[1]",
        reason="as the part before it",
    ),
    Excuse(
        LUA + "fetch.lua",
        at="",
        pattern="if streams then",
        reason="chooses in which order queues are read",
    ),
    Excuse(
        LUA + "fetch.lua",
        at="",
        pattern="exist[_] == 1",
        reason=SAVES,
    ),
    Excuse(
        LUA + "fetch.lua",
        at="divert",
        pattern="redis.call('SADD', ...) == 1",
        reason="a group is made once: Redis refuses it twice",
    ),
    Excuse(
        LUA + "fetch.lua",
        at="clear",
        pattern="string.find(stream, ...)",
        reason="an empty stream that goes is made again when needed",
    ),
    Excuse(
        LUA + "lease.lua",
        at="",
        pattern="if what == 'renew' then",
        reason=CHOOSES,
    ),
    Excuse(
        LUA + "lease.lua",
        at="",
        pattern="elseif what == 'release' then",
        reason=CHOOSES,
    ),
    Excuse(
        LUA + "lease.lua",
        at="",
        pattern="what == 'acknowledge_outbox'",
        reason=CHOOSES,
    ),
    Excuse(
        LUA + "lease.lua",
        at="",
        pattern="what == 'acknowledge_commit'",
        reason=CHOOSES,
    ),
    Excuse(
        LUA + "lease.lua",
        at="",
        pattern="what == 'acknowledge_copies'",
        reason=CHOOSES,
    ),
    Excuse(
        LUA + "lease.lua",
        at="",
        pattern="what == 'forget_copies'",
        reason=CHOOSES,
    ),
    Excuse(
        LUA + "lease.lua",
        at="",
        pattern="what == 'wipe'",
        reason=CHOOSES,
    ),
    Excuse(
        LUA + "lease.lua",
        at="",
        pattern="what == 'restore'",
        reason=CHOOSES,
    ),
    Excuse(
        LUA + "lease.lua",
        at="",
        pattern="what == 'built'",
        reason=CHOOSES,
    ),
    Excuse(
        LUA + "list.lua",
        at="actions.pending",
        pattern="left > 0",
        reason="saves a call: Redis lists none of at most none",
    ),
    Excuse(
        LUA + "list.lua",
        at="actions.tasks",
        pattern="left[name] > 0 and pending(...)",
        reason="as the part before it",
    ),
    Excuse(
        LUA + "list.lua",
        at="actions.pending",
        pattern="entry and entry[2][2] or ''",
        reason="an entry without its task is listed, as nobody's",
    ),
    Excuse(
        LUA + "list.lua",
        at="pending",
        pattern="found.err and {} or found",
        reason="an error has no length and no parts: the same comes of it",
    ),
    Excuse(
        LUA + "list.lua",
        at="actions.back",
        pattern="count > 0",
        reason="a worker that is woken for nothing waits again",
    ),
    Excuse(
        LUA + "read.lua",
        at="until_full",
        pattern="left <= 0",
        reason="ends an answer that is long enough; the rest is asked for again",
    ),
    Excuse(
        LUA + "recall.lua",
        at="",
        pattern="not pending.err",
        reason="a stream that is gone has no entry either",
    ),
    Excuse(
        LUA + "task.part.lua",
        at="read_text",
        pattern="kind >= 0xa0",
        reason=READS,
    ),
    Excuse(
        LUA + "task.part.lua",
        at="read_text",
        pattern="kind <= 0xbf",
        reason=READS,
    ),
    Excuse(
        LUA + "task.part.lua",
        at="read_text",
        pattern="kind == 0xd9",
        reason=READS,
    ),
    Excuse(
        LUA + "task.part.lua",
        at="read_text",
        pattern="kind == 0xda",
        reason=READS,
    ),
    Excuse(
        LUA + "task.part.lua",
        at="read_number",
        pattern="kind < 0x80",
        reason=READS,
    ),
    Excuse(
        LUA + "task.part.lua",
        at="read_beginning",
        pattern="0xdc and 4 or 2",
        reason=READS,
    ),
    Excuse(
        LUA + "task.part.lua",
        at="read_text",
        pattern="error(...)",
        reason="without it the number after the text fails on what is no number",
    ),
    Excuse(
        "stores/postgres/intents.sql",
        at="insert_uses",
        pattern="ON CONFLICT DO NOTHING",
        reason="a blob is used by an execution, however often it says so",
    ),
    Excuse(
        "stores/postgres/retention.sql",
        at="select_strays",
        pattern="NOT EXISTS",
        reason="looks for what may be deleted; the deletion asks again",
    ),
    Excuse(
        "stores/postgres/retention.py",
        at="COUNT_BLOBS",
        pattern=Sql("NOT EXISTS"),
        reason="counts what a purge would delete; the purge itself asks again",
    ),
    Excuse(
        "stores/postgres/retention.sql",
        at="select_oldest_started",
        pattern="phase = 'started'",
        reason="looks for the oldest, and lets nothing in or out",
    ),
    Excuse(
        "stores/redis/queue.py",
        at="RedisTaskQueue.leave",
        pattern="_[0] != worker_id",
        reason="frees memory; what isn't on its list, the script refuses",
    ),
    Excuse(
        "stores/redis/queue.py",
        at="RedisTaskQueue.fetch",
        pattern="_ not in self._wakers",
        reason="makes a waker once",
    ),
    Excuse(
        "stores/sqlite/forgetting.sql",
        at="select_oldest_started",
        pattern="phase = 'started'",
        reason="looks for the oldest, and lets nothing in or out",
    ),
    Excuse(
        "stores/sqlite/hot.py",
        at="_write_begun",
        pattern=Sql("AND state = 'PENDING'"),
        reason="for one that is read while its first commit is written: its row is RUNNING soon",
    ),
    Excuse(
        "stores/sqlite/hot.py",
        at="SqliteHotStore.load",
        pattern="_ not in EXECUTION_ENDS",
        reason="what has ended needs no number in memory",
    ),
    Excuse(
        "stores/memory/task_queue.py",
        at="MemoryTaskQueue._pass_over",
        pattern="_ in self._stopped",
        reason="saves work: what was stopped is dropped when it is met again",
    ),
    Excuse(
        "stores/memory/task_queue.py",
        at="MemoryTaskQueue.share_logs",
        pattern="_ in self._claimed",
        reason="a log of what is over is only to look at, and is dropped",
    ),
    Excuse(
        "orchestrator/tiering/archiver.py",
        at="_copies",
        pattern="_.has_ended",
        reason="saves a look: what was said last of what has ended is all there is",
    ),
    Excuse(
        "orchestrator/meter.py",
        at="Meter._time",
        pattern="_.attempt == _",
        reason="measures; nothing is decided by it",
    ),
    Excuse(
        "orchestrator/outcomes.py",
        at="_log_failure",
        pattern="_.attempt == _",
        reason="words a line of the log; nothing is decided by it",
    ),
    Excuse(
        "orchestrator/tiering/rebuild.py",
        at="build",
        pattern="if _ == _: ...",
        reason="says in the log why it is built again",
    ),
    Excuse(
        "orchestrator/tiering/cold_writer.py",
        at="ColdWriter._acknowledge",
        pattern="not copy.summary.has_ended",
        reason="saves work: one that has ended leaves the hot store next",
    ),
    Excuse(
        "stores/postgres/signals.sql",
        at="select_undelivered",
        pattern="phase = 'started'",
        reason="a signal to an execution that has ended changes nothing",
    ),
    Excuse(
        "stores/postgres/posts.sql",
        at="select_waits",
        pattern="phase = 'started'",
        reason="the end of an execution closes its waits",
    ),
    Excuse(
        "stores/sqlite/posts.sql",
        at="select_waits",
        pattern="phase = 'started'",
        reason="the end of an execution closes its waits",
    ),
    Excuse(
        "stores/postgres/waits.sql",
        at="put_waits",
        pattern="phase = 'started'",
        reason="a wait that is listed after the end is only shown, and not even that",
    ),
    Excuse(
        "stores/postgres/waits.sql",
        at="select_waits",
        pattern="phase = 'started'",
        reason="the end of an execution closes its waits",
    ),
    Excuse(
        "stores/postgres/waits.sql",
        at="select_numbers",
        pattern="phase = 'started'",
        reason="a signal to an execution that has ended changes nothing",
    ),
    Excuse(
        "stores/postgres/posts.sql",
        at="lock_execution",
        pattern="FOR UPDATE",
        reason="the primary key refuses a second signal with the same number",
    ),
    Excuse(
        "stores/postgres/posts.sql",
        at="delete_expired",
        pattern="FOR UPDATE",
        reason="without it, two that delete the same rows wait for each other",
    ),
    Excuse(
        "stores/memory/signals.py",
        at="MemorySignals.undelivered",
        pattern="_ in EXECUTION_ENDS",
        reason="a signal to an execution that has ended changes nothing",
    ),
]
