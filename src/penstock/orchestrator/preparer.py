"""The preparer evaluates conditions and configs of nodes in a sandbox, beside the owner's loop.

Other executions go on meanwhile. An overrun is an answer like any other: the node fails with it,
and that is recorded, so that no later owner tries for ever. If the owner dies before the answer is
recorded, the next one asks again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing

import msgspec

from penstock.engine.events import Value
from penstock.engine.preparing import FUNCTION, Preparation, Prepared, failed, parts_of
from penstock.errors import StoreError
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.sandbox import Job, JobFailed, Overrun, Sandbox

log = logging.getLogger("penstock.orchestrator")

OVERRUNS_MAX = 3
"""Overruns after which an execution's other preparations fail at once.

A document can have thousands of them.
"""
NOT_TRIED = (
    f"expressions of this execution went over a limit {OVERRUNS_MAX} times, so it wasn't tried"
)
"""The error of the preparations that fail at once."""
ANSWERS_BYTES_MAX = 32 * 1024 * 1024
"""Bytes, about, of an execution's answers that wait for its owner.

Sixty outputs may have the same 5 MB each.
"""
StoreConfig = Callable[[bytes], Awaitable[Value]]
"""Puts a config into the blob store, if it is large and the blob store is there."""


def how_many_at_once(preparations: Sequence[Preparation]) -> int:
    """The number of preparations whose answers aren't too large together; at least one.

    As if each took over all that it refers to.
    """
    total = 0
    for number, preparation in enumerate(preparations):
        config = preparation.config
        if config is not None and (config.slots or preparation.is_data):
            total += sum(map(len, preparation.values.values()))
        if total > ANSWERS_BYTES_MAX and number:
            return number
    return len(preparations)


def _answers_bytes(answers: Mapping[str, Prepared]) -> int:
    total = 0
    for answer in answers.values():
        for value in (answer.config, answer.output):
            if isinstance(value, bytes):
                total += len(value)
    return total


class Preparer:
    """Does the preparations of executions.

    `wake` makes the owner handle an execution for which there are answers. Large configs are stored
    before that (`store_config`): while the owner commits, all other executions wait.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        wake: Callable[[str], Awaitable[None]],
        store_config: StoreConfig,
        timing: OrchestratorTiming,
    ) -> None:
        self._retry_seconds = timing.retry_seconds
        self._sandbox = sandbox
        self._wake = wake
        self._store_config = store_config
        self._answers: dict[str, dict[str, Prepared]] = {}
        self._under_way: dict[str, dict[str, asyncio.Task[None]]] = {}
        """Tasks that do preparations, by execution and node."""
        self._overruns: dict[str, int] = {}
        self._taken: dict[str, asyncio.Event] = {}
        """Events by execution, set when its owner takes the answers."""

    def ask(
        self, execution_id: str, workflow: str, preparations: Mapping[str, Preparation]
    ) -> None:
        """Ask for preparations.

        Nothing is done twice: an execution that was loaded again meanwhile asks again.
        """
        under_way = self._under_way.setdefault(execution_id, {})
        answered = self._answers.get(execution_id, {})
        new = {
            node_id: preparation
            for node_id, preparation in preparations.items()
            if node_id not in under_way and node_id not in answered
        }
        if new:
            task = asyncio.create_task(self._prepare(execution_id, workflow, list(new.values())))
            under_way.update(dict.fromkeys(new, task))

    def take(self, execution_id: str) -> dict[str, Prepared]:
        if not self._answers:
            return {}
        if execution_id in self._taken:
            self._taken[execution_id].set()
        return self._answers.pop(execution_id, {})

    def forget(self, execution_id: str) -> None:
        """Forget an execution that has ended: nobody waits for an answer."""
        self._answers.pop(execution_id, None)
        self._overruns.pop(execution_id, None)
        for task in set(self._under_way.pop(execution_id, {}).values()):
            task.cancel()

    async def close(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        for under_way in self._under_way.values():
            tasks.update(under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _prepare(self, execution_id: str, workflow: str, left: list[Preparation]) -> None:
        together = True
        while left:
            if self._overruns.get(execution_id, 0) >= OVERRUNS_MAX:
                for preparation in left:
                    self._note(execution_id, preparation, failed(preparation, NOT_TRIED))
                await self._wake_owner(execution_id)
                return
            batch = left[: how_many_at_once(left)] if together else left[:1]
            done = await self._run_job(execution_id, workflow, batch)
            # after an overrun one by one: only then it is clear whose it was
            together = together and done == len(batch)
            left = left[done:]
            if done:
                await self._wake_owner(execution_id)
            if left:
                await self._until_there_is_room(execution_id)

    async def _until_there_is_room(self, execution_id: str) -> None:
        """Wait until the owner has taken answers of this execution.

        It does so when it comes to the execution; an execution that ends cancels this.
        """
        while _answers_bytes(self._answers.get(execution_id, {})) > ANSWERS_BYTES_MAX:
            self._taken[execution_id] = taken = asyncio.Event()
            try:
                await taken.wait()
            finally:
                self._taken.pop(execution_id, None)

    async def _run_job(self, execution_id: str, workflow: str, left: list[Preparation]) -> int:
        """Do preparations as far as one job goes, which ends with the first overrun.

        Returns how many are done. In a job of many, one pays for values that others look at too;
        only one that is alone has overrun by itself.
        """
        done = 0
        try:
            job = Job(FUNCTION, parts_of(left), turn=workflow)
            async with aclosing(self._sandbox.run(job)) as answers:  # type: ignore[type-var]
                async for answer in answers:
                    prepared = msgspec.msgpack.decode(answer, type=Prepared)
                    if isinstance(prepared.config, bytes):
                        prepared.config = await self._store_config(prepared.config)
                    self._note(execution_id, left[done], prepared)
                    done += 1
        except Overrun as error:
            if len(left) > 1:
                return done
            self._overruns[execution_id] = self._overruns.get(execution_id, 0) + 1
            log.warning("execution %s, node %s: %s", execution_id, left[done].node_id, error)
            self._note(execution_id, left[done], failed(left[done], str(error)))
            done += 1
        except JobFailed as error:
            log.error(  # noqa: TRY400
                "execution %s, node %s can't be prepared: %s",
                execution_id,
                left[done].node_id,
                error,
            )
            self._note(execution_id, left[done], failed(left[done], str(error)))
            done += 1
        return done

    def _note(self, execution_id: str, preparation: Preparation, prepared: Prepared) -> None:
        self._answers.setdefault(execution_id, {})[preparation.node_id] = prepared
        under_way = self._under_way.get(execution_id, {})
        under_way.pop(preparation.node_id, None)

    async def _wake_owner(self, execution_id: str) -> None:
        while True:
            try:
                await self._wake(execution_id)
            except StoreError:  # an owner whose store is gone ends soon, and this with it
                await asyncio.sleep(self._retry_seconds)
            else:
                return
