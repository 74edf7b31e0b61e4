"""What is said between the pool and its child processes: frames of a length and that many bytes.

pool → child    a header (msgpack), then each part of the job
child → pool    ANSWER and the bytes of one answer, as often as the function yields;
                then DONE, or FAILED and a text
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from importlib import import_module
from typing import Protocol

import msgspec

from penstock.errors import PenstockError

LENGTH = struct.Struct("<Q")
READY = b"\x06"
"""What a child says when it has imported what it needs."""
ANSWER = b"a"
DONE = b"d"
FAILED = b"f"
EXIT_OUT_OF_MEMORY = 77

JobFunction = Callable[[Sequence[bytes]], Iterator[bytes]]


class Header(msgspec.Struct, array_like=True):
    function: str
    parts: int
    seconds: float


class Job(msgspec.Struct, frozen=True):
    function: str
    """`module:function`; it takes the parts and yields its answers.

    Each answer has the whole time limit.
    """
    parts: Sequence[bytes]
    turn: str = ""
    """Jobs of different turns take turns: one workflow's thousand jobs don't keep another's
    waiting.
    """
    seconds: float | None = None
    """Processor time for each answer, if not the pool's own limit."""


class Overrun(PenstockError):
    """A job went over a limit. The text says which one."""


class JobFailed(PenstockError):
    """The function raised: a mistake of ours, not of whoever wrote the document."""


class Sandbox(Protocol):
    def run(self, job: Job) -> AsyncIterator[bytes]:
        """The answers, as they come. Raises `Overrun`."""

    async def close(self) -> None: ...


async def call(sandbox: Sandbox, job: Job) -> bytes:
    """The one answer of a job that has one."""
    answers = [answer async for answer in sandbox.run(job)]
    return answers[0]


def find(function: str) -> JobFunction:
    module, _, name = function.partition(":")
    job_function: JobFunction = getattr(import_module(module), name)
    return job_function
