"""Live logs: what running tasks have logged so far, shared by their workers."""

from itertools import islice

from penstock.contract.facts import begin, hand_out, new_execution_ids, queued, task
from penstock.stores.base import Stores
from penstock.stores.task_keys import key_of

ECHO = {"echo"}


async def test_what_was_shared_of_a_task_is_read_until_more_is_shared_or_it_is_taken_away(
    stores: Stores,
) -> None:
    queue = stores.queue
    _, (a, b) = await hand_out(stores, "a", "b")
    await queue.fetch("worker-1", ECHO, 2)
    text = await queue.live_log(key_of(a))
    assert text == ""

    await queue.share_logs({key_of(a): "first", key_of(b): "other"})
    await queue.share_logs({key_of(a): "first\nsecond"})
    text = await queue.live_log(key_of(a))
    assert text == "first\nsecond"

    text = await queue.live_log(key_of(b))
    assert text == "other"

    await queue.share_logs({key_of(a): ""})
    text = await queue.live_log(key_of(a))
    assert text == ""

    text = await queue.live_log(key_of(b))
    assert text == "other"


async def test_attempts_generations_and_nodes_are_not_mixed_up(stores: Stores) -> None:
    queue = stores.queue
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    nodes = [("a", 1, 1), ("a", 1, 2), ("a", 2, 1), ("1:a", 1, 1), ("é 日本/*{0}\n", 1, 1)]
    tasks = [
        task(execution_id, node, generation=generation, attempt=attempt)
        for node, generation, attempt in nodes
    ]
    await owner.commit(queued(*tasks))
    fetched = await queue.fetch("worker-1", ECHO, 10)
    assert len(fetched) == len(tasks)

    keys = [key_of(task) for task in tasks]
    for key in keys:
        await queue.share_logs({key: f"of {key}"})

    for key in keys:
        text = await queue.live_log(key)
        assert text == f"of {key}"


async def test_texts_of_many_executions_are_shared_at_once_and_come_back_as_they_were(
    stores: Stores,
) -> None:
    queue = stores.queue
    texts: dict[tuple[str, str, int, int], str] = {}
    for partition in range(stores.hot.partitions):
        execution_ids = list(islice(new_execution_ids(stores, partition), 2))
        owner = await begin(stores, *execution_ids)
        for execution_id in execution_ids:
            dispatched = task(execution_id)
            await owner.commit(queued(dispatched))
            texts[key_of(dispatched)] = f"é 😀\x00 {execution_id}\n" + "x" * 65536
        await queue.fetch("worker-1", ECHO, 10)
    await queue.share_logs(texts)
    assert {key: await queue.live_log(key) for key in texts} == texts
