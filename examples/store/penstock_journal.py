"""A store in memory whose every change is also in a file, the journal.

Opening the store makes all changes again.

    journal:///work.journal        relative
    journal:////var/lib/x.journal  absolute

One process at a time has it. What is in the journal: what users asked for (definitions, intents,
control requests, API keys, the audit log) and every commit. What isn't: leases, inboxes and queued
tasks. `Topology.tasks_are_durable` says so, and Penstock hands these tasks out again.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
from msgspec import structs

from penstock.config import Settings
from penstock.definition.model import HandlerDefaults
from penstock.errors import SettingsError, StoreLocked, StoreUnavailable
from penstock.stores.base import Intent
from penstock.stores.blobs import DirectoryBlobs
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.hooks import Delivery, Handled, HookRow
from penstock.stores.memory import MemoryStores
from penstock.stores.memory.cold import MemoryColdStore
from penstock.stores.posts import Post
from penstock.stores.records import ApiKey, AuditLine, Weights
from penstock.stores.schedules import Schedule, SlotWrite
from penstock.stores.signals import Judge, NewSignal
from penstock.stores.topology import Topology

HEAD_BYTES = 8
"""Before each entry: its length and its CRC, four bytes each."""

CHANGES: dict[str, dict[str, Any]] = {
    "definitions": {
        "put_workflow": tuple[str, str, bytes, float],
        "put_inline": tuple[str, str, bytes, float],
        "delete_workflow": tuple[str],
        "set_alias": tuple[str, str, Weights],
        "remove_alias": tuple[str, str],
        "remember_handlers": tuple[dict[str, HandlerDefaults]],
    },
    "executions": {
        "record_intents": tuple[list[Intent], dict[str, AuditLine]],
        "trigger": tuple[str, bytes | None, dict[str, Any]],
        "request_control": tuple[str, str],
    },
    "signals": {
        "put": tuple[NewSignal, int],
    },
    "posts": {
        "put": tuple[Post],
    },
    "schedules": {
        "write": tuple[Schedule, list[SlotWrite]],
        "delete": tuple[str],
        "forget_slots": tuple[float, int],
    },
    "hooks": {
        "put": tuple[HookRow],
        "delete": tuple[str],
        "claim": tuple[str, bytes, float],
        "release": tuple[str, bytes, float],
        "record": tuple[Delivery, Handled | None],
        "forget": tuple[float],
    },
    "dead_letters": {
        "close_dead_letters": tuple[list[int], str, float, str | None],
    },
    "api_keys": {
        "put_key": tuple[ApiKey],
        "revoke_key": tuple[str, float],
    },
    "audit_log": {
        "write_audit": tuple[list[AuditLine]],
        "forget_audit": tuple[float, int],
    },
}
"""The methods of a `ColdStore` that change something, with the types of their arguments."""


def open_stores(address: str, settings: Settings) -> JournalStores:
    """The entry point.

    It has no attribute `is_shared`: one process at a time may have a journal.
    """
    path = address.removeprefix("journal:///")
    if path in ("", address):
        raise SettingsError(
            f"{address!r} names no file; use journal:///FILE, or journal:////FOLDER/FILE"
        )
    return JournalStores(Path(path), Path(settings.blobs) if settings.blobs else None)


class JournalStores:
    topology = Topology(is_tiered=False, is_shared=False, tasks_are_durable=False)
    tiering = None  # hot and cold are one
    commit_feed = None  # nobody else commits
    fleet = None  # there are no other processes

    def __init__(self, path: Path, blobs: Path | None = None) -> None:
        self._journal = Journal(path)
        self._memory = MemoryStores(time.time)
        self.hot = JournalHotStore(self._memory.hot, self._journal)
        self.cold = JournalColdStore(self._memory.cold, self._journal)
        self.queue = self._memory.queue
        self.blobs = DirectoryBlobs(blobs or path.with_name(path.name + ".blobs"))

    async def open(self) -> None:
        await self._memory.open()
        for kind, data in self._journal.open():
            if kind == "commit":
                await self._commit_again(msgspec.msgpack.decode(data, type=CommitPlan))
            elif kind == "forget":
                await self._memory.forget(*msgspec.msgpack.decode(data, type=tuple[float]))
            else:
                part, _, method = kind.partition(".")
                arguments = msgspec.msgpack.decode(data, type=CHANGES[part][method])
                await getattr(getattr(self._memory.cold, part), method)(*arguments)

    async def _commit_again(self, plan: CommitPlan) -> None:
        """With a new lease: nobody has the one that it was made with.

        The inbox begins at 0 again.
        """
        lease = await self._memory.hot.acquire(plan.partition, "journal", 0.0)
        plan = structs.replace(plan, token=lease.token, position=0)
        await self._memory.hot.commit(plan)
        await self._memory.hot.release(lease)

    async def forget(self, before: float) -> int:
        self._journal.check()
        forgotten = await self._memory.forget(before)
        if forgotten:
            self._journal.write("forget", (before,))
        return forgotten

    async def close(self) -> None:
        self._journal.close()
        await self._memory.close()


class JournalHotStore:
    """As the one in memory, but for commits."""

    def __init__(self, memory: Any, journal: Journal) -> None:
        self._memory = memory
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    async def commit(self, plan: CommitPlan) -> None:
        """In the journal before anybody can see it: between these lines nothing else runs.

        Without the tasks, which are handed out again, and without what the changes have anyway.
        """
        self._journal.check()
        await self._memory.commit(plan)  # raises `Fenced` before it changes anything
        self._journal.write("commit", structs.replace(plan, tasks=[], stops=[], outbox=[], feed=[]))

    def check_open(self) -> None:
        self._memory.check_open()
        self._journal.check()


class JournalColdStore:
    def __init__(self, memory: MemoryColdStore, journal: Journal) -> None:
        self.definitions = JournalPart("definitions", memory.definitions, journal)
        self.executions = JournalExecutions("executions", memory.executions, journal)
        self.signals = JournalSignals("signals", memory.signals, journal)
        self.posts = JournalPart("posts", memory.posts, journal)
        self.schedules = JournalSchedules("schedules", memory.schedules, journal)
        self.hooks = JournalHooks("hooks", memory.hooks, journal)
        self.waits = memory.waits  # commits change them
        self.dead_letters = JournalDeadLetters("dead_letters", memory.dead_letters, journal)
        self.counts = memory.counts  # these only read
        self.api_keys = JournalPart("api_keys", memory.api_keys, journal)
        self.audit_log = JournalPart("audit_log", memory.audit_log, journal)


class JournalPart:
    """A part of the cold store as in memory, but for its methods in `CHANGES`."""

    def __init__(self, name: str, memory: Any, journal: Journal) -> None:
        self._name = name
        self._memory = memory
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        if name in CHANGES[self._name]:
            return partial(self._change, name)
        return getattr(self._memory, name)

    async def _change(self, name: str, *arguments: Any, **named: Any) -> Any:
        method = getattr(self._memory, name)
        all_arguments = _all_arguments(method, *arguments, **named)
        self._journal.check()
        answer = await method(*all_arguments)  # what it refuses isn't written
        # nor what it found nothing for (0, False); None is the answer of those that always change
        if answer != 0:
            self._write(name, all_arguments)
        return answer

    def _write(self, name: str, arguments: Any) -> None:
        self._journal.write(f"{self._name}.{name}", arguments)


class JournalDeadLetters(JournalPart):
    async def close_dead_letters(self, ids: Collection[int], *arguments: Any, **named: Any) -> int:
        """Only those that are there: what is asked for may be a number that no entry can hold."""
        existing = [
            dead_letter_id
            for dead_letter_id in ids
            if await self._memory.dead_letter(dead_letter_id) is not None
        ]
        closed: int = await self._change("close_dead_letters", existing, *arguments, **named)
        return closed


class JournalHooks(JournalPart):
    async def put(self, hook: HookRow) -> bool:
        """Store a hook. False is the answer for one that is changed, and it is written too."""
        self._journal.check()
        is_new: bool = await self._memory.put(hook)
        self._write("put", (hook,))
        return is_new


class JournalExecutions(JournalPart):
    async def record_intents(
        self, intents: Any, audit: Mapping[str, AuditLine] | None = None
    ) -> list[str]:
        """Record intents, without those whose idempotency key returned an earlier execution.

        When the journal is read, the key may have been forgotten.
        """
        self._journal.check()
        lines = dict(audit or {})
        ids: list[str] = await self._memory.record_intents(intents, lines)
        new_intents = [
            intent
            for intent, recorded_id in zip(intents, ids, strict=True)
            if intent.record.execution_id == recorded_id
        ]
        if new_intents:
            self._write("record_intents", (new_intents, lines))
        return ids


class JournalSignals(JournalPart):
    async def put(self, signal: NewSignal, taken: int = 0, judge: Judge | None = None) -> Any:
        """Store a signal. A signal that was stored before isn't written again.

        Who judges has judged when the journal is read.
        """
        self._journal.check()
        stored = await self._memory.put(signal, taken, judge)
        if stored.is_new:
            self._write("put", (signal, taken))
        return stored


class JournalSchedules(JournalPart):
    async def write(self, schedule: Schedule, slots: Sequence[SlotWrite] = ()) -> Any:
        """Write a schedule and its slots. It is journaled as it was before its revision was raised.

        The intents of its slots are in the same entry.
        """
        self._journal.check()
        before = structs.replace(schedule)
        written = await self._memory.write(schedule, slots)
        if written is not None:
            self._write("write", (before, list(slots)))
        return written


def _all_arguments(method: Any, *arguments: Any, **named: Any) -> list[Any]:
    """In the order of the signature, whether they were given by place, by name or not at all."""
    bound = signature(method).bind(*arguments, **named)
    bound.apply_defaults()
    return [
        list(argument) if isinstance(argument, (set, frozenset)) else argument
        for argument in bound.args
    ]


class Journal:
    """A file of entries, each on disk before `write` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None
        self._why_broken = ""

    def open(self) -> Iterator[tuple[str, bytes]]:
        """Answers all entries.

        What a crash left of the last one, which nobody was told of, is cut off.
        """
        try:
            self._file = self._path.open("a+b")
        except OSError as error:
            raise SettingsError(
                f"{self._path} can't be opened: {error.strerror}; name another file"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise StoreLocked(
                f"{self._path} is used by another process; stop it, or name another file"
            ) from None
        self._file.seek(0)
        data = self._file.read()
        end = 0
        entries: list[tuple[str, bytes]] = []
        while (entry := _entry_at(data, end)) is not None:
            kind, arguments = msgspec.msgpack.decode(entry, type=tuple[str, msgspec.Raw])
            entries.append((kind, bytes(arguments)))
            end += HEAD_BYTES + len(entry)
        self._file.truncate(end)
        return iter(entries)

    def check(self) -> None:
        if self._why_broken:
            raise StoreUnavailable(self._why_broken)

    def write(self, kind: str, arguments: Any) -> None:
        entry = msgspec.msgpack.encode((kind, arguments))
        head = len(entry).to_bytes(4, "big") + crc32(entry).to_bytes(4, "big")
        try:
            self._file.write(head + entry)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            # memory has what the file hasn't: only a new start makes them the same again
            self._why_broken = (
                f"{self._path} can't be written: {error.strerror}; free space, and start again"
            )
            raise StoreUnavailable(self._why_broken) from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _entry_at(data: bytes, start: int) -> bytes | None:
    """None at the end, and where an entry isn't whole."""
    head = data[start : start + HEAD_BYTES]
    length, checksum = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
    entry = data[start + HEAD_BYTES : start + HEAD_BYTES + length]
    is_whole = len(head) == HEAD_BYTES and len(entry) == length and crc32(entry) == checksum
    return entry if is_whole and entry else None
