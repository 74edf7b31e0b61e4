"""One process per file. The lock is the operating system's, so it goes with the process however that ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from penstock.errors import StoreLocked

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class LockFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._lock()
        except OSError:
            holder = self._holder()
            os.close(self._file)
            who = f"process {holder}" if holder else "another process"
            raise StoreLocked(
                f"{path.with_suffix('')} is in use by {who}; stop it, or name another file with --store"
            ) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, str(os.getpid()).encode())

    def _lock(self) -> None:
        if sys.platform == "win32":
            msvcrt.locking(self._file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _holder(self) -> str:
        if sys.platform == "win32":
            return ""  # what is locked there can't be read either
        return os.pread(self._file, 32, 0).decode(errors="replace").strip()

    def release(self) -> None:
        # the file stays: removing it would let two processes lock two files of the same name
        os.ftruncate(self._file, 0)
        os.close(self._file)
