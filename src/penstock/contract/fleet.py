"""The fleet: orchestrators that announce themselves, and what shared stores show of all processes.

Stores of one process have no fleet to show; the tests of it end at once there.
"""

from penstock.contract.facts import HOUR, hand_out
from penstock.definition.model import HandlerDefaults
from penstock.engine.events import ExecutionStarted
from penstock.stores.base import Stores
from penstock.stores.fleet import ClaimedTask, OrchestratorDetails

ECHO = {"echo"}


async def test_the_topology_says_which_parts_a_store_has(stores: Stores) -> None:
    topology = stores.topology
    assert topology.is_tiered == (stores.tiering is not None)
    assert topology.is_shared == (stores.commit_feed is not None)
    assert topology.is_shared == (stores.fleet is not None)

    if topology.is_shared:
        assert topology.tasks_are_durable


async def test_an_orchestrator_is_a_member_from_its_announcement_on(stores: Stores) -> None:
    members = await stores.hot.announce("b", HOUR, OrchestratorDetails([], 1))
    assert members == ["b"]

    if stores.topology.is_shared:
        members = await stores.hot.announce("a", HOUR, OrchestratorDetails([0], 2))
        assert members == ["a", "b"]


async def test_an_orchestrator_that_has_left_is_no_member(stores: Stores) -> None:
    about = OrchestratorDetails([], 1)
    await stores.hot.announce("a", HOUR, about)
    await stores.hot.deregister("a")
    await stores.hot.deregister("nobody")
    members = await stores.hot.announce("b", HOUR, about)
    assert members == ["b"]


async def test_orchestrators_are_shown_with_what_they_announced_last(stores: Stores) -> None:
    fleet = stores.fleet
    if fleet is None:
        return
    orchestrators = await fleet.orchestrators()
    assert orchestrators == {}

    await stores.hot.announce("a", HOUR, OrchestratorDetails([0, 1], 10))
    await stores.hot.announce("b", HOUR, OrchestratorDetails([], 20))
    await stores.hot.announce("b", HOUR, OrchestratorDetails([1], 20))
    orchestrators = await fleet.orchestrators()
    assert orchestrators == {
        "a": OrchestratorDetails([0, 1], 10),
        "b": OrchestratorDetails([1], 20),
    }

    await stores.hot.deregister("a")
    orchestrators = await fleet.orchestrators()
    assert orchestrators == {"b": OrchestratorDetails([1], 20)}


async def test_workers_are_shown_with_what_they_serve_and_their_tasks(stores: Stores) -> None:
    fleet = stores.fleet
    if fleet is None:
        return
    workers = await fleet.workers(10)
    assert workers == []

    _, tasks = await hand_out(stores, "a", "b")
    claimed = await stores.queue.fetch("worker-1", ECHO, 10)
    await stores.queue.heartbeat("worker-2", {"urgent", "echo"}, [], {"call": HandlerDefaults()})
    await stores.queue.heartbeat("worker-1", ECHO, [])
    await stores.queue.heartbeat("worker-1", ECHO, [])

    first, second = await fleet.workers(10)
    assert first.offer.worker_id == "worker-1"
    assert first.offer.handlers is None
    assert first.heartbeats == 2

    by_node = {task.node_id: task for task in first.tasks}
    assert len(claimed) == len(tasks) == len(by_node)

    for task in tasks:
        shown = by_node[task.node_id]
        assert shown == ClaimedTask.of(task, shown.seconds)

    assert second.offer.worker_id == "worker-2"
    assert set(second.offer.queues) == {"urgent", "echo"}
    assert second.offer.handlers == {"call": HandlerDefaults()}
    assert second.heartbeats == 1
    assert second.tasks == []

    (limited, _) = await fleet.workers(1)
    assert len(limited.tasks) == 1

    await stores.queue.leave("worker-2", [])
    workers = await fleet.workers(10)
    assert [worker.offer.worker_id for worker in workers] == ["worker-1"]


async def test_the_length_of_the_inboxes_counts_what_is_not_committed(stores: Stores) -> None:
    fleet = stores.fleet
    if fleet is None:
        return
    length = await fleet.inbox_length()
    assert length == 0

    await stores.hot.append([ExecutionStarted("execution-1")])
    await stores.hot.append([ExecutionStarted("execution-1")])
    length = await fleet.inbox_length()
    assert length == 2
