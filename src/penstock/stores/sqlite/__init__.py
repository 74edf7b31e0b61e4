"""The embedded store: one file, one process, one writer thread; nothing else to install.

- `lock`: one process per file.
- `preparing`: makes a file a store, or upgrades an older one.
- `watching`: whether the files are still the ones that are open.
- `writer`: the one thread that writes; what comes while it is busy shares the next transaction.
- `reader`: reads, in a thread of their own.
- `reading`: `ReadOnlySqliteStores`, a file that is read only, also while it is in use.
- `hot`: executions, inbox, timers, commits.
- `claims`: which tasks' handlers have been called, in a file that outlives the process.
- `cold`: `SqliteColdStore`, which puts the following together.
- `definitions`: workflow versions, aliases, known handlers.
- `executions`: intents, and what became of them.
- `rows`: the row of a new execution.
- `intents`: recording intents.
- `children`: what commits send to other executions.
- `numbers`: the numbers of executions, in order of creation.
- `searching`: one page of a search.
- `counting`: counts.
- `signals`: signals to executions.
- `waits`: nodes that wait for somebody.
- `posts`: signals to whoever waits for a correlation.
- `dead_letters`: dead letters.
- `api_keys`: API keys.
- `audit_log`: the audit log.
- `forgetting`: deletes what retention has done with, while the store is in use.
- `purging`: `penstock purge`.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from penstock.errors import StoreError
from penstock.stores.blobs import DirectoryBlobs
from penstock.stores.object_blobs import BlobsMovedToObjects, ObjectBlobs
from penstock.stores.sqlite.claims import Claims
from penstock.stores.sqlite.cold import SqliteColdStore
from penstock.stores.sqlite.hot import SqliteHotStore
from penstock.stores.sqlite.lock import StoreLock
from penstock.stores.sqlite.numbers import Numbers
from penstock.stores.sqlite.preparing import SCHEMA_VERSION, UPDATES, prepare, unusable
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.watching import FileWatch
from penstock.stores.sqlite.writer import Writer
from penstock.stores.topology import Topology

__all__ = ["SCHEMA_VERSION", "UPDATES", "SqliteStores"]


class SqliteStores:
    topology = Topology(is_tiered=False, is_shared=False, tasks_are_durable=False)
    tiering = None
    commit_feed = None
    fleet = None
    blobs: DirectoryBlobs | BlobsMovedToObjects

    def __init__(
        self, path: Path, blobs: Path | None = None, objects: ObjectBlobs | None = None
    ) -> None:
        """`blobs` is a folder for large values, `objects` an object store for them.

        Without both, they are in a folder beside the file.
        """
        path = path.absolute()
        if not path.parent.is_dir():
            raise StoreError(
                f"{path}: the folder {path.parent} doesn't exist; create it, or name another file"
            )
        with ExitStack() as undo:
            try:
                self._open_files(undo, path, blobs)
            except OSError as error:
                raise unusable(path, error) from None
            if objects is not None:
                self.blobs = BlobsMovedToObjects(objects, self._folder)
            self._closing = undo.pop_all()

    def _open_files(self, undo: ExitStack, opened: Path, blobs: Path | None) -> None:
        """Open the store's files. `undo` closes them in the opposite order: the lock goes last."""
        lock = StoreLock(opened)
        undo.callback(lock.release)
        path = self.path = lock.path
        folder = blobs or path.with_name(path.name + ".blobs")
        # the last connection that closes removes the log: this one stays until there is another
        with closing(prepare(path)):
            claims = Claims(path.with_name(path.name + ".claims"))
            undo.callback(claims.close)
            reader = Reader(path)
            undo.callback(reader.close)
            searcher = Reader(path)
            undo.callback(searcher.close)
            beside = [path.with_name(path.name + end) for end in ("-wal", "-shm", ".claims")]
            watch = FileWatch([path, *beside], folder)
            undo.callback(watch.close)
            self._writer = Writer(path, watch)
            undo.callback(self._writer.close_now)

        numbers = Numbers(reader)
        self.hot = SqliteHotStore(self._writer, reader, claims, numbers)
        self.queue = self.hot.queue
        self.cold = SqliteColdStore(self.hot, self._writer, reader, searcher, numbers)
        # earlier versions had the folder beside a symbolic link, not beside the linked file
        earlier_folder = opened.with_name(opened.name + ".blobs")
        self.blobs = self._folder = DirectoryBlobs(folder, earlier_folder, on_made=watch.look)

    async def open(self) -> None:
        """Nothing to do: the store is open once it is made."""

    async def forget(self, before: float) -> int:
        """Delete old executions, and large values that nobody needs any more."""
        forgotten = await self.cold.retention.forget_executions(before)
        await self.cold.retention.forget_blobs(self.blobs, before)
        return forgotten

    async def close(self) -> None:
        """Close the store; it may be closed a second time."""
        with self._closing:
            await self._writer.close()
