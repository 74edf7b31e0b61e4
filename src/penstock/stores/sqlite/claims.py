"""Claims: which tasks workers have claimed, in a file that outlives the process.

A handler that kills its process must cost its node an attempt, or it would be run again for ever.
So a claim is written before the handler is called, and removed when the task's outcome is on disk.
Claims are in a memory map: they survive `kill -9` without a system call per task. They don't
survive a power cut, and needn't: then the attempt runs again, as "at least once per attempt" says.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec

from penstock.stores.task_keys import Key

SLOT_BYTES = 2048
"""An id, an address of 256 characters of 4 bytes, two numbers."""
HEADER = struct.Struct("<H")
GROW_SLOTS = 256
_decoder = msgspec.msgpack.Decoder(Key)
_encode = msgspec.msgpack.Encoder().encode


class Claims:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._slots = max(os.fstat(self._file).st_size // SLOT_BYTES, GROW_SLOTS)
        self._map = self._reserve()
        self._turn = threading.Lock()
        """Handlers begin in threads too."""
        self._taken = self._read()
        self.left_over = set(self._taken)
        """Tasks that the last process had claimed when it ended.

        Each stays claimed until its loss is recorded.
        """
        taken_slots = set(self._taken.values())
        self._free = [slot for slot in range(self._slots) if slot not in taken_slots]

    def _reserve(self) -> mmap.mmap:
        """Reserve the file's room on disk.

        On a full disk, writing into a hole of a mapped file would end the process.
        """
        size = self._slots * SLOT_BYTES
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._file, 0, size)
        else:
            os.ftruncate(self._file, size)
        return mmap.mmap(self._file, size)

    def _read(self) -> dict[Key, int]:
        slots: dict[Key, int] = {}
        for slot in range(self._slots):
            start = slot * SLOT_BYTES
            (length,) = HEADER.unpack_from(self._map, start)
            if not 0 < length <= SLOT_BYTES - HEADER.size:
                continue
            first = start + HEADER.size
            try:
                key = _decoder.decode(self._map[first : first + length])
            except msgspec.DecodeError:
                continue  # half written when the process ended: the handler hadn't been called
            slots[key] = slot
        return slots

    def add(self, key: Key) -> None:
        data = _encode(key)
        with self._turn:
            if key in self._taken:
                self._remove(key)
            if not self._free:
                self._grow()
            slot = self._taken[key] = self._free.pop()
            start = slot * SLOT_BYTES
            first = start + HEADER.size
            self._map[first : first + len(data)] = data
            # last: a claim without a length doesn't exist
            HEADER.pack_into(self._map, start, len(data))

    def remove(self, keys: Iterable[Key]) -> None:
        with self._turn:
            for key in keys:
                self._remove(key)

    def _remove(self, key: Key) -> None:
        slot = self._taken.pop(key, None)
        if slot is not None:
            HEADER.pack_into(self._map, slot * SLOT_BYTES, 0)
            self._free.append(slot)

    def _grow(self) -> None:
        first = self._slots
        self._slots *= 2
        self._map.close()
        self._map = self._reserve()
        self._free.extend(range(first, self._slots))

    def close(self) -> None:
        self._map.close()
        os.close(self._file)
