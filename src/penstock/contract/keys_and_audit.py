"""API keys and the audit log."""

from typing import Any

from penstock.engine.commands import ExecutionRecord
from penstock.engine.states import ExecutionState
from penstock.stores.base import Intent, Stores
from penstock.stores.records import ApiKey, AuditLine, AuditSearch


async def test_keys_are_listed_in_order_of_creation_with_revoked_ones(stores: Stores) -> None:
    assert await stores.cold.keys() == []
    second = ApiKey("k2", "é", ("read", "submit"), b"\x00\xff", 2.0)
    first = ApiKey("k1", "first", (), b"hash", 1.0)
    for key in (second, first):
        await stores.cold.put_key(key)
    assert await stores.cold.keys() == [first, second]
    assert await stores.cold.revoke_key("k1", 5.0)
    first.revoked_at = 5.0
    assert await stores.cold.keys() == [first, second]


async def test_a_key_is_revoked_once(stores: Stores) -> None:
    await stores.cold.put_key(ApiKey("k1", "first", ("admin",), b"hash", 1.0))
    assert await stores.cold.revoke_key("k1", 5.0)
    for name in ("k1", "unknown", "half \ud800"):
        assert not await stores.cold.revoke_key(name, 6.0)
    assert [key.revoked_at for key in await stores.cold.keys()] == [5.0]


async def test_a_key_with_the_same_id_takes_the_place_of_the_first(stores: Stores) -> None:
    await stores.cold.put_key(ApiKey("k1", "first", ("admin",), b"hash", 1.0))
    other = ApiKey("k1", "other", ("read",), b"another", 2.0)
    await stores.cold.put_key(other)
    assert await stores.cold.keys() == [other]


async def test_audit_lines_come_back_newest_first_as_they_were_written(stores: Stores) -> None:
    assert await stores.cold.audit(AuditSearch()) == []
    lines = [
        _line(1.0),
        _line(2.0, detail={"a": [1, None, "é"]}),
        _line(3.0, key_id="", key_name=""),
    ]
    await stores.cold.write_audit(lines[:2])
    await stores.cold.write_audit([])
    await stores.cold.write_audit(lines[2:])
    found = await stores.cold.audit(AuditSearch())
    numbers = [line.id for line in found]
    assert numbers == sorted(set(numbers), reverse=True)
    for line in found:
        line.id = 0
    assert found == lines[::-1]


async def test_audit_lines_are_found_by_each_filter(stores: Stores) -> None:
    lines = [
        _line(1.0, action="start_execution", object="executions/1"),
        _line(2.0, action="cancel_execution", object="executions/1", key_id="k2"),
        _line(3.0, action="cancel_execution", object="executions/2"),
        _line(4.0, action="put_workflow", object="workflows/a%b", key_id=""),
    ]
    await stores.cold.write_audit(lines)
    expected: list[tuple[list[float], dict[str, Any]]] = [
        ([4.0, 3.0, 2.0, 1.0], {}),
        ([3.0, 1.0], {"key_id": "k1"}),
        ([4.0], {"key_id": ""}),
        ([3.0, 2.0], {"action": "cancel_execution"}),
        ([2.0, 1.0], {"object": "executions/1"}),
        ([4.0, 3.0], {"since": 3.0}),
        ([2.0, 1.0], {"until": 3.0}),
        ([3.0], {"since": 3.0, "until": 4.0}),
        ([3.0], {"action": "cancel_execution", "limit": 1}),
        ([2.0], {"action": "cancel_execution", "key_id": "k2"}),
        ([], {"object": "executions/%"}),
    ]
    for times, wanted in expected:
        assert [line.at for line in await stores.cold.audit(AuditSearch(**wanted))] == times, wanted
    assert await stores.cold.audit(AuditSearch(object="half \ud800")) == []
    assert len(await stores.cold.audit(AuditSearch(before=2**70))) == 4


async def test_audit_pages_have_no_gap_and_no_repeat_while_lines_are_added(stores: Stores) -> None:
    await stores.cold.write_audit([_line(float(at)) for at in range(10)])
    seen: list[float] = []
    before = None
    while page := await stores.cold.audit(AuditSearch(before=before, limit=3)):
        seen += [line.at for line in page]
        before = page[-1].id
        await stores.cold.write_audit([_line(99.0)])
    assert seen == [float(at) for at in range(9, -1, -1)]


def _line(at: float, **fields: object) -> AuditLine:
    given = {
        "key_id": "k1",
        "key_name": "first",
        "action": "start_execution",
        "object": "executions/1",
        "address": "127.0.0.1",
        "status": 201,
        **fields,
    }
    return AuditLine(at, **given)  # type: ignore[arg-type]


async def test_a_line_that_comes_with_an_execution_is_written_with_it_and_only_if_it_is_new(
    stores: Stores,
) -> None:
    first, again = (
        Intent(record, "order-7", "same request") for record in (_record("e1"), _record("e2"))
    )
    assert await stores.cold.record_intents(
        [first], {"e1": _line(1.0, object="executions/e1")}
    ) == ["e1"]
    assert await stores.cold.record_intents(
        [again], {"e2": _line(2.0, object="executions/e2")}
    ) == ["e1"]
    assert [line.object for line in await stores.cold.audit(AuditSearch())] == ["executions/e1"]


def _record(name: str) -> ExecutionRecord:
    return ExecutionRecord(name, "flow", 1, ExecutionState.PENDING, b"{}", 1.0)


async def test_old_audit_lines_are_forgotten_in_portions_and_numbers_are_not_given_twice(
    stores: Stores,
) -> None:
    await stores.cold.write_audit([_line(float(at)) for at in range(10)])
    numbers = [line.id for line in await stores.cold.audit(AuditSearch())]
    assert [await stores.cold.forget_audit(7.0, 4) for _ in range(3)] == [4, 3, 0]
    found = await stores.cold.audit(AuditSearch())
    assert [(line.at, line.id) for line in found] == list(
        zip((9.0, 8.0, 7.0), numbers, strict=False)
    )
    await stores.cold.write_audit([_line(10.0)])
    assert (await stores.cold.audit(AuditSearch()))[0].id > numbers[0]
