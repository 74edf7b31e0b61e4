"""Watching the files of a store: whether they are still the ones that it has open.

A file that is deleted, moved or replaced still accepts writes as long as a process has it open, and
all of them are lost when the process ends. So the files' names are checked several times a second,
and once more before a caller is told that something was accepted. While a file is away nothing is
written; when the same file is back, writing goes on.
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
        """`files` are open, so their inodes can't be used again; `folder` may not exist yet."""
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
        """Raises `StoreFileLost` if a file was gone at the last look."""
        if self._problem:
            raise StoreFileLost(self._problem)

    def look(self) -> None:
        """Look at the files now. Raises `StoreFileLost`."""
        with self._turn:
            problem = self._find_problem()
            if problem and problem != self._problem:
                log.error("%s", problem)
            if self._problem and not problem:
                log.warning("the files of %s are back; writing goes on", self._files[0][0])
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

    def _find_problem(self) -> str:
        try:
            for file, identity in self._files:
                if identity_of(file) != identity:
                    return _describe_loss(file, is_there=file.exists())
            if self._look_at_folder() != self._folder_identity:
                return _describe_loss(self._folder, is_there=self._folder.exists())
        except OSError as error:
            file_name = error.filename or self._files[0][0]
            return f"{file_name} can't be accessed any more: {error.strerror}"
        return ""

    def _look_at_folder(self) -> Identity | None:
        """The folder's identity now. Once the folder exists it is kept open.

        So another folder can't get its inode.
        """
        identity = identity_of(self._folder)
        if identity is not None and self._folder_identity is None:
            if sys.platform != "win32":
                self._folder_file = os.open(self._folder, os.O_RDONLY)
            self._folder_identity = identity
        return identity


def _describe_loss(file: Path, *, is_there: bool) -> str:
    what = "was replaced by another" if is_there else "was deleted or moved"
    return (
        f"{file} {what} while it was in use; what is written now would be lost, "
        "so nothing is accepted. Put it back, "
        "or stop Penstock and restore the store from a backup"
    )
