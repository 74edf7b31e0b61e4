"""The sandbox without processes and without limits.

For tests and simulations, whose loop doesn't wait for pipes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from penstock.sandbox.frames import Job, find


class InlineSandbox:
    async def run(self, job: Job) -> AsyncIterator[bytes]:
        for answer in find(job.function)(job.parts):
            yield answer

    async def close(self) -> None:
        """There is nothing to close."""
