"""`penstock.SyncClient` against the real service, which runs in a process of its own."""

import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import penstock
from tests.cli.serving import dev
from tests.client.service import FAIL, NAP, one


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dev(tmp_path_factory.mktemp("dev")) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[penstock.SyncClient]:
    with penstock.SyncClient(url) as opened:
        yield opened


def test_an_execution_from_start_to_end(client: penstock.SyncClient):
    handle = client.start(one("echo", config={"x": "{{ input.x }}"}), {"x": 7})
    assert [event["to"] for event in handle.events()][-1] == "COMPLETED"
    assert handle.result().output == {"a": {"x": 7}}
    assert client.execution(handle.id).status().version == handle.accepted["version"]
    assert [item["execution_id"] for item in client.executions(workflow="one", limit=1)] == [
        handle.id
    ]


def test_it_may_be_used_from_many_threads(client: penstock.SyncClient):
    def run(n: int) -> object:
        return (
            client.start(one("echo", "echo", config={"n": "{{ input.n }}"}), {"n": n})
            .result(timeout=30)
            .output
        )

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(run, range(100))) == [{"a": {"n": n}} for n in range(100)]


def test_errors_and_time_outs_are_raised_where_they_are_waited_for(client: penstock.SyncClient):
    with pytest.raises(penstock.NotFound):
        client.execution("nobody").status()
    handle = client.start(NAP)
    with pytest.raises(TimeoutError):
        handle.result(timeout=0.05)
    handle.cancel()
    assert handle.result().state == "CANCELLED"


def test_an_iterator_may_be_left_early(client: penstock.SyncClient):
    handle = client.start(NAP)
    for event in handle.events():
        assert event["seq"] == 1
        break
    handle.cancel()
    assert handle.result().state == "CANCELLED"


def test_dead_letters_and_retries(client: penstock.SyncClient):
    failed = client.start(FAIL, {"x": 1})
    failed.result()
    dead_letter = next(client.dead_letters(execution_id=failed.id))
    assert client.retry_dead_letter(dead_letter["id"])["retry_of"] == failed.id
    handles = client.start_many(FAIL, [{"x": 1}, {"x": 2}])
    assert [handle.result().state for handle in handles] == ["FAILED", "FAILED"]


def test_a_closed_client_says_so(url: str):
    client = penstock.SyncClient(url)
    handle = client.start(NAP)
    events = handle.events()
    next(events)
    handle.cancel()
    client.close()
    client.close()
    for call in (client.health, lambda: next(events)):
        with pytest.raises(penstock.PenstockError, match="has been closed"):
            call()
    assert "penstock-client" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("asynchronous", "blocking"),
    [(penstock.Client, penstock.SyncClient), (penstock.Execution, penstock.SyncExecution)],
)
def test_both_clients_have_the_same_methods(asynchronous: type, blocking: type):
    expected = {name for name in vars(asynchronous) if not name.startswith("_")} - {
        "url",
        "retry_seconds",
    }
    assert expected <= set(dir(blocking))
    for name in expected:
        member = inspect.getattr_static(asynchronous, name)
        if inspect.isfunction(member):
            assert (
                inspect.signature(member) == inspect.signature(getattr(blocking, name))
                or name == "execution"
            )
