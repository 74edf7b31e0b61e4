"""What owners of partitions, and whoever works beside them, refuse or leave out."""

from __future__ import annotations

from scripts.guards.guard import Guard

GUARDS = [
    Guard(
        "an accepted execution without a start is started", "orchestrator/recovery.py",
        '[ExecutionStarted(name) for name in lost if wishes.get(name) != "cancel"]', "[]",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "a wish that nobody handled is asked for again", "orchestrator/recovery.py",
        "            if name in wishes:", "            if False:",
        "tests/orchestrator",
    ),
    Guard(
        "time in which the reaper couldn't look kills nobody", "orchestrator/reaper.py",
        "min(now - last, 2 * look_seconds)", "now - last",
        "tests/orchestrator/test_reaper.py",
    ),
    Guard(
        "a bad execution is wrecked, not retried for ever", "orchestrator/owner.py",
        "                    await self._wreck(event.execution_id, error, now)", "                    raise",
        "tests/orchestrator/test_owner.py",
    ),
    Guard(
        "what is being prepared is not asked for again", "orchestrator/preparer.py",
        " if node not in under_way and node not in answered}", "}",
        "tests/orchestrator/test_preparing.py",
    ),
    Guard(
        "an execution that overran often enough is not tried any more", "orchestrator/preparer.py",
        "if self._overruns.get(execution_id, 0) >= OVERRUNS_MAX:", "if False:",
        "tests/orchestrator/test_preparing.py",
    ),
    Guard(
        "an execution that breaks fails from what landed", "orchestrator/owner.py",
        "        await self._committer.wait_landed()\n        await self._fail(", "        await self._fail(",
        "tests/orchestrator/test_committer.py",
    ),
    Guard(
        "nothing leaves memory before what was decided has landed", "orchestrator/owner.py",
        "        await self._committer.wait_landed()  # whatever is loaded again must be what was decided here\n", "",
        "tests/orchestrator/test_resting.py",
    ),
    Guard(
        "a rebuilt execution is in a new generation", "orchestrator/rebuild.py",
        "begin_generation(stored.record, stored.runs.values(), stored.last_seq, generation, now)",
        "begin_generation(stored.record, stored.runs.values(), stored.last_seq, stored.record.generation, now)",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "what begins again after a loss is in a new generation", "orchestrator/rebuild.py",
        "            intent.record.generation = generation\n", "",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a hot store without its mark is built again", "orchestrator/rebuild.py",
        "if built == store_id and lease.commit_number >= known_number:", "if lease.commit_number >= known_number:",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a hot store that has gone back in time is built again", "orchestrator/rebuild.py",
        "if built == store_id and lease.commit_number >= known_number:", "if built == store_id:",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "an orchestrator remembers how far its partitions were", "orchestrator/service.py",
        "            known_number=self._numbers.get(lease.partition, 0),\n", "",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a rebuild that was broken off is begun again", "orchestrator/rebuild.py",
        "generation = await split.cold.begin_rebuild(partition, lease.term, number)",
        "generation = await split.cold.begin_rebuild(partition, lease.term, 0)",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "nothing is built on a second master while the first one lives", "orchestrator/rebuild.py",
        "        if claimed is not None:\n",
        "        claimed = claimed or Claim(lease.term, 0, None)\n        if claimed is not None:\n",
        "tests/orchestrator/test_split_brain.py",
    ),
    Guard(
        "rebuilds on two servers are some time apart", "orchestrator/rebuild.py",
        "if claimed.seconds_since_rebuild is not None:", "if False:",
        "tests/orchestrator/test_split_brain.py",
    ),
    Guard(
        "an owner whose claim was taken ends", "orchestrator/ferry.py",
        "if not await self._split.cold.renew_claim(partition, term, server_id):",
        "if not await self._split.cold.renew_claim(partition, term, server_id) and False:",
        "tests/orchestrator/test_split_brain.py",
    ),
    Guard(
        "copies of an owner whose claim was taken are refused", "stores/split.py",
        "if term is not None and term != found:", "if False:",
        "tests/postgres/test_claims.py",
    ),
    Guard(
        "what is rebuilt goes on by itself", "orchestrator/rebuild.py",
        "else [Continued(name)]", "else []",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "copies come with a commit number that covers them", "orchestrator/transfer.py",
        "while not self._owner.is_at_rest and", "while False and",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "what a cold store refuses is dropped only if it takes anything else", "orchestrator/transfer.py",
        "                await self._blame_content(number, error)\n", "",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "what can't be archived stays in the hot store", "orchestrator/archiver.py",
        " and entry.execution_id not in refused\n", "\n",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "what has no row in the cold store stays in the hot store", "orchestrator/transfer.py",
        "        return missing\n", "        return set()\n",
        "tests/orchestrator/test_cold_store_went_back.py",
    ),
    Guard(
        "letters of an execution without a row bring all of it", "orchestrator/transfer.py",
        "        if missing:  # only", "        if False:  # only",
        "tests/orchestrator/test_cold_store_went_back.py",
    ),
    Guard(
        "what an older copy of the cold store has as running runs again", "orchestrator/rebuild.py",
        "if found < lease.cold_number:", "if False:",
        "tests/orchestrator/test_cold_store_went_back.py",
    ),
    Guard(
        "an owner with nothing to copy notices that the cold store went back", "orchestrator/checkpointer.py",
        "            await self._carrier.check()\n", "            pass\n",
        "tests/orchestrator/test_cold_store_went_back.py",
    ),
    Guard(
        "what the hot store has is not touched when the cold store went back", "orchestrator/rebuild.py",
        "if each.changes and each.execution_id not in known]", "if each.changes]",
        "tests/orchestrator/test_cold_store_went_back.py",
    ),
    Guard(
        "an execution whose version is lost waits", "orchestrator/owner.py",
        "if isinstance(error, PlanMissing):", "if False:",
        "tests/orchestrator/test_cold_store_went_back.py",
    ),
    Guard(
        "what runs doesn't wait for a cold store that says nothing", "orchestrator/loader.py",
        "if now < self._silent_until:", "if False:",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "only what has ended leaves the hot store", "orchestrator/archiver.py",
        "entry.summary is not None and entry.summary.has_ended and", "entry.summary is not None and",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "a cold store that is away stops no owner", "orchestrator/loader.py",
        "if not self._is_split or not known.keys().isdisjoint(needed):", "if True:",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "a cold store that is away doesn't end an owner through its reconciler", "orchestrator/tenure.py",
        "with contextlib.suppress(StoreUnavailable):", "with contextlib.nullcontext():",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "an owner that has nothing to write proves now and then that it may", "orchestrator/owner.py",
        "return self._is_split and", "return False and",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a partition is given up only after its commit has landed", "orchestrator/tenure.py",
        "while not self.owner.is_at_rest:", "while False:",
        "tests/orchestrator/test_balance.py",
    ),
    Guard(
        "a lease is given up after everything under it has ended", "orchestrator/tenure.py",
        "            await _ended(services, self._lease_seconds)\n", "",
        "tests/orchestrator",
    ),
    Guard(
        "an owner whose end was taken for a failure is ended again", "orchestrator/tenure.py",
        "_, left = await asyncio.wait(left, timeout=patience)", "_, left = await asyncio.wait(left)",
        "tests/orchestrator/test_balance.py",
    ),
    Guard(
        "an orchestrator takes no more than its share", "orchestrator/service.py",
        "for partition in remaining[share:]:", "for partition in ():",
        "tests/orchestrator/test_balance.py",
    ),
    Guard(
        "an owner that can't renew its lease ends when it has run out", "orchestrator/tenure.py",
        "while loop.time() - last < self._lease_seconds:", "while True:",
        "tests/orchestrator/test_balance.py",
    ),
    Guard(
        "a start that waits in the inbox is not lost", "orchestrator/recovery.py",
        "if name not in awaited]", "]",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "a start that was handled meanwhile is not lost", "orchestrator/recovery.py",
        "unknown = await _unknown(stores, [name for name in unknown if name not in awaited])",
        "unknown = [name for name in unknown if name not in awaited]",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "an execution that has left the hot store is not lost", "orchestrator/recovery.py",
        "if each.record.state not in EXECUTION_ENDS}", "}",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "a wish that nobody handled is asked for again where tasks are durable", "orchestrator/recovery.py",
        "    events += [EVENTS[wish](name) for name, wish in wishes.items()]\n", "",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "a new owner records the reused outputs that the last one hadn't", "orchestrator/loader.py",
        "return bool(stored.record.reused) or stored.record.state is ExecutionState.PENDING", "return False",
        "tests/orchestrator/test_beginnings.py",
    ),
    Guard(
        "a cancel that comes before the start ends the execution", "orchestrator/owner.py",
        "MAY_BE_FIRST = (ExecutionStarted, CancelRequested)", "MAY_BE_FIRST = (ExecutionStarted,)",
        "tests/orchestrator/test_beginnings.py",
    ),
    Guard(
        "what has ended in the hot store is not loaded again", "orchestrator/loader.py",
        "            if stored.record.state in EXECUTION_ENDS:\n                return None\n", "",
        "tests/orchestrator/test_owner.py tests/orchestrator/test_beginnings.py",
    ),
    Guard(
        "an intent that has ended begins nothing", "orchestrator/loader.py",
        "if intent is None or intent.record.state in EXECUTION_ENDS:", "if intent is None:",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "what has ended can't be wrecked", "orchestrator/owner.py",
        "if stored is not None and stored.record.state not in EXECUTION_ENDS:", "if stored is not None:",
        "tests/orchestrator/test_owner.py",
    ),
    Guard(
        "a worker whose heart beats is not dead", "orchestrator/reaper.py",
        "if self._beats.get(worker_id) != beats:", "if worker_id not in self._beats:",
        "tests/orchestrator/test_reaper.py",
    ),
    Guard(
        "a worker is dead only after its time", "orchestrator/reaper.py",
        "if seconds - self._reaped_at.get(worker_id, 0.0) >= limit:", "if True:",
        "tests/orchestrator/test_reaper.py",
    ),
    Guard(
        "a worker that comes back and dies again has as long as before", "orchestrator/reaper.py",
        "if silent.get(worker_id, 0.0) >= at", "if True",
        "tests/orchestrator/test_reaper.py",
    ),
    Guard(
        "an intent that has ended is not rebuilt", "orchestrator/rebuild.py",
        "if intent.record.state not in EXECUTION_ENDS:", "if True:",
        "tests/orchestrator/test_rebuild.py",
    ),
    Guard(
        "a task that a dead process had claimed has lost its attempt", "orchestrator/recovery.py",
        "if run.state == NodeState.RUNNING or key in orphans:", "if run.state == NodeState.RUNNING:",
        "tests/orchestrator/test_recovery.py tests/orchestrator/test_service.py tests/acceptance/test_crashes.py",
    ),
    Guard(
        "a task that is still in the queue is not handed out again", "orchestrator/recovery.py",
        "        if queue.knows(key):\n            continue", "        if False:\n            continue",
        "tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "copies wait for the commit under way, and no longer", "orchestrator/transfer.py",
        " and self._lease.commit_number == before:", ":",
        "tests/orchestrator/test_transfer.py",
    ),
    Guard(
        "a checkpoint doesn't bring what has ended", "orchestrator/checkpointer.py",
        "if summary is not None and not summary.has_ended:", "if summary is not None:",
        "tests/orchestrator/test_transfer.py",
    ),
]  # fmt: skip
