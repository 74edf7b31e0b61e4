"""Whether the files of a store are still the ones that it has open.

A file that is deleted, moved or replaced goes on taking what is written to it, as long as somebody
has it open, and all of that is gone when the process ends. So the names are looked at several times
a second, and once more before anything that was accepted is answered. While a file is away nothing
is written; when the same one is back, all goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import StoreFileLost
from penstock.stores.sqlite.lock import Identity, identity_of

log = logging.getLogger("penstock.stores")

LOOK_SECONDS = 0.25


class FileWatch:
    def __init__(self, files: Sequence[Path], folder: Path) -> None:
        """`files` are open, so their inodes can't be used again; `folder` may be made later."""
        self._files = [(file, identity_of(file)) for file in files]
        self._folder = folder
        self._folder_identity: Identity | None = None
        self._folder_file: int | None = None
        self._problem = ""
        self._ended = threading.Event()
        self._turn = threading.Lock()
        self._look_at_folder()
        self._thread = threading.Thread(target=self._run, name="penstock-files", daemon=True)
        self._thread.start()

    def raise_if_gone(self) -> None:
        """Raises `StoreFileLost` if the last look found one of them gone."""
        if self._problem:
            raise StoreFileLost(self._problem)

    def look(self) -> None:
        """Look at the files now. Raises `StoreFileLost`."""
        with self._turn:
            problem = self._find()
            if problem != self._problem:
                if problem:
                    log.error("%s", problem)
                else:
                    log.warning(
                        "the files of %s are back; it is written to again", self._files[0][0]
                    )
            self._problem = problem
        self.raise_if_gone()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        if self._folder_file is not None:
            os.close(self._folder_file)
            self._folder_file = None

    def _run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            with contextlib.suppress(StoreFileLost):
                self.look()

    def _find(self) -> str:
        try:
            for file, identity in self._files:
                if identity_of(file) != identity:
                    return _gone(file, is_there=file.exists())
            if self._look_at_folder() != self._folder_identity:
                return _gone(self._folder, is_there=self._folder.exists())
        except OSError as error:
            return f"{error.filename or self._files[0][0]} can't be looked at any more: {error.strerror}"
        return ""

    def _look_at_folder(self) -> Identity | None:
        """Look at the folder, and hold it open once it is there.

        A new one must not get its inode.
        """
        found = identity_of(self._folder)
        if found is not None and self._folder_identity is None:
            if sys.platform != "win32":
                self._folder_file = os.open(self._folder, os.O_RDONLY)
            self._folder_identity = found
        return found


def _gone(file: Path, *, is_there: bool) -> str:
    what = "was replaced by another" if is_there else "was deleted or moved"
    return (
        f"{file} {what} while it was in use; what is written now would be lost, so nothing is accepted. Put it back, "
        "or stop Penstock and restore the store from a backup"
    )
