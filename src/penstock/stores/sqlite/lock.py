"""One process per file, whatever name the file is opened by.

The locks are the operating system's: they go with the process however that ends. A store is locked
twice. The lock on the file itself (`_FileLock`) belongs to its device and inode, so it is met
through a symbolic link, a hard link and another mount alike. The lock on a file beside it
(`LockFile`) is the one that earlier versions know, and the only one where the system has no locks
that belong to an open file; it also has the number of the process in it.

Why the lock on the file doesn't get in SQLite's way:

- SQLite has POSIX locks on some bytes from 2**30 on. Ours is on one byte far behind them, so
  neither ever waits for the other. (`flock` is for the whole file: NFS and BSD would refuse
  SQLite's locks then.)
- POSIX locks of a process on a file all go as soon as it closes any descriptor of that file. So
  ours is opened before SQLite opens the file, closed when SQLite has closed it, and never opened
  while a store of this process has the file: `_in_use` says which those are.
- For the same reason our lock is no POSIX lock but one of the open file: SQLite closes descriptors,
  too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
import struct
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path

from penstock.errors import StoreError, StoreLocked

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCKED_BYTE = 2**62
Identity = tuple[int, int]

_in_use: set[Identity] = set()
"""Files that stores of this process have."""
_turn = threading.Lock()


def identity_of(path: Path) -> Identity | None:
    """A file's identity, device and inode; None if there is nothing of that name."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


class StoreLock:
    """A store's lock: the lock on its file, and the lock file beside it.

    `path` is the name that the file is to be used by; it may differ from the name that was opened.

    Raises `StoreLocked`.
    """

    def __init__(self, opened: Path, *, create: bool = True) -> None:
        with ExitStack() as undo:
            file = _FileLock(opened, create=create)
            undo.callback(file.release)
            self.identity = file.identity
            self.path = name_in_use(opened)
            for name in dict.fromkeys((self.path, opened.parent.resolve() / opened.name)):
                lock = LockFile(name.with_name(name.name + ".lock"))
                undo.callback(lock.release)
            self._undo = undo.pop_all()

    def release(self) -> None:
        """Release the store's lock, when SQLite has closed the file."""
        self._undo.close()


def name_in_use(opened: Path) -> Path:
    """The name that a store's file is used by.

    SQLite's log has a name of its own beside it, so it must be the same through all links.
    """
    path = opened.resolve()
    if path.stat().st_nlink > 1:
        recorded = _recorded_name(path)
        if recorded is not None and identity_of(recorded) == identity_of(path):
            return recorded
    return path


def _recorded_name(path: Path) -> Path | None:
    """The recorded name of the file.

    It is read without SQLite's log (`immutable`), which would be looked for under the wrong name.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'path'").fetchone()
    except sqlite3.Error:
        return None  # not a store, or not yet: opening it raises the error
    return Path(row[0]) if row else None


class _FileLock:
    def __init__(self, path: Path, *, create: bool) -> None:
        self._path = path
        self._create = create
        with _turn:
            while not self._take():
                pass  # the file was replaced meanwhile: the new one is to be locked
            _in_use.add(self.identity)

    def _take(self) -> bool:
        if identity_of(self._path) in _in_use:
            raise _in_use_by(self._path, str(os.getpid()))
        self._file = os.open(self._path, os.O_RDWR | (os.O_CREAT if self._create else 0), 0o600)
        try:
            self.identity = self._lock()
        except BaseException:
            os.close(self._file)
            raise
        if identity_of(self._path) == self.identity:
            return True
        os.close(self._file)
        return False

    def _lock(self) -> Identity:
        status = os.fstat(self._file)
        identity = (status.st_dev, status.st_ino)
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(f"{self._path} isn't a regular file; name another with --store")
        if not _lock_byte(self._file):
            raise _in_use_by(self._path, _holder_of(identity))
        return identity

    def release(self) -> None:
        with _turn:
            _in_use.discard(self.identity)
            os.close(self._file)


def _lock_byte(file: int) -> bool:
    """Lock a byte of the file; False if another process has it."""
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return True  # no such locks here: the lock file beside it has to do
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, LOCKED_BYTE, 1, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
    except OSError as error:
        # anything else: a file system without such locks
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True


def _holder_of(identity: Identity) -> str:
    """The id of the process that has the lock on the file; '' if the system doesn't tell.

    The lock itself doesn't say whose it is.
    """
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            status = descriptor.stat()
            process = descriptor.parent.parent
            if (status.st_dev, status.st_ino) == identity and process.name != str(os.getpid()):
                about = (process / "fdinfo" / descriptor.name).read_text()
                if "OFDLCK" in about:
                    return process.name
    return ""


def _in_use_by(path: Path, holder: str) -> StoreLocked:
    who = f"process {holder}" if holder else "another process"
    return StoreLocked(f"{path} is in use by {who}; stop it, or name another file with --store")


class LockFile:
    """A lock file beside the file that it locks: `store.db.lock` for `store.db`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._lock()
        except OSError:
            holder = self._holder()
            os.close(self._file)
            raise _in_use_by(path.with_suffix(""), holder) from None
        with contextlib.suppress(OSError):  # a full disk: it is locked without the process's id
            os.ftruncate(self._file, 0)
            os.write(self._file, str(os.getpid()).encode())

    def _lock(self) -> None:
        if sys.platform == "win32":
            msvcrt.locking(self._file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _holder(self) -> str:
        if sys.platform == "win32":
            return ""  # a locked file can't be read on Windows
        return os.pread(self._file, 32, 0).decode(errors="replace").strip()

    def release(self) -> None:
        # the file stays: removing it would let two processes lock two files of the same name
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
        os.close(self._file)
