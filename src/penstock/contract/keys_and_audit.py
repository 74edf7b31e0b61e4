"""API keys and the audit log."""

from typing import Any

from penstock.engine.commands import ExecutionRecord
from penstock.engine.states import ExecutionState
from penstock.stores.base import Intent, Stores
from penstock.stores.records import ApiKey, AuditLine, AuditSearch


async def test_keys_are_listed_in_order_of_creation_with_revoked_ones(stores: Stores) -> None:
    cold = stores.cold
    assert await cold.api_keys.keys() == []

    second = ApiKey("k2", "é", ("read", "submit"), b"\x00\xff", 2.0)
    first = ApiKey("k1", "first", (), b"hash", 1.0)
    for key in (second, first):
        await cold.api_keys.put_key(key)

    assert await cold.api_keys.keys() == [first, second]
    assert await cold.api_keys.revoke_key("k1", 5.0)

    first.revoked_at = 5.0
    assert await cold.api_keys.keys() == [first, second]


async def test_a_key_is_revoked_once(stores: Stores) -> None:
    cold = stores.cold
    await cold.api_keys.put_key(ApiKey("k1", "first", ("admin",), b"hash", 1.0))
    assert await cold.api_keys.revoke_key("k1", 5.0)
    for key_id in ("k1", "unknown", "half \ud800"):
        assert not await cold.api_keys.revoke_key(key_id, 6.0)
    assert [key.revoked_at for key in await cold.api_keys.keys()] == [5.0]


async def test_a_key_with_the_same_id_takes_the_place_of_the_first(stores: Stores) -> None:
    cold = stores.cold
    await cold.api_keys.put_key(ApiKey("k1", "first", ("admin",), b"hash", 1.0))
    other = ApiKey("k1", "other", ("read",), b"another", 2.0)
    await cold.api_keys.put_key(other)
    assert await cold.api_keys.keys() == [other]


async def test_audit_lines_come_back_newest_first_as_they_were_written(stores: Stores) -> None:
    cold = stores.cold
    assert await cold.audit_log.audit(AuditSearch()) == []

    lines = [
        _audit_line(1.0),
        _audit_line(2.0, detail={"a": [1, None, "é"]}),
        _audit_line(3.0, key_id="", key_name=""),
    ]
    await cold.audit_log.write_audit(lines[:2])
    await cold.audit_log.write_audit([])
    await cold.audit_log.write_audit(lines[2:])
    listed = await cold.audit_log.audit(AuditSearch())
    numbers = [line.id for line in listed]
    assert numbers == sorted(set(numbers), reverse=True)

    for line in listed:
        line.id = 0

    assert listed == lines[::-1]


async def test_audit_lines_are_found_by_each_filter(stores: Stores) -> None:
    cold = stores.cold
    lines = [
        _audit_line(1.0, action="start_execution", object="executions/1"),
        _audit_line(2.0, action="cancel_execution", object="executions/1", key_id="k2"),
        _audit_line(3.0, action="cancel_execution", object="executions/2"),
        _audit_line(4.0, action="put_workflow", object="workflows/a%b", key_id=""),
    ]
    await cold.audit_log.write_audit(lines)
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
        matches = await cold.audit_log.audit(AuditSearch(**wanted))
        assert [line.at for line in matches] == times, wanted

    assert await cold.audit_log.audit(AuditSearch(object="half \ud800")) == []
    assert len(await cold.audit_log.audit(AuditSearch(before=2**70))) == 4


async def test_audit_pages_have_no_gap_and_no_repeat_while_lines_are_added(stores: Stores) -> None:
    cold = stores.cold
    await cold.audit_log.write_audit([_audit_line(float(at)) for at in range(10)])
    seen: list[float] = []
    before = None
    while page := await cold.audit_log.audit(AuditSearch(before=before, limit=3)):
        seen += [line.at for line in page]
        before = page[-1].id
        await cold.audit_log.write_audit([_audit_line(99.0)])

    assert seen == [float(at) for at in range(9, -1, -1)]


def _audit_line(at: float, **fields: object) -> AuditLine:
    all_fields = {
        "key_id": "k1",
        "key_name": "first",
        "action": "start_execution",
        "object": "executions/1",
        "address": "127.0.0.1",
        "status": 201,
        **fields,
    }
    return AuditLine(at, **all_fields)  # type: ignore[arg-type]


async def test_a_line_that_comes_with_an_execution_is_written_with_it_and_only_if_it_is_new(
    stores: Stores,
) -> None:
    cold = stores.cold
    first = Intent(_record("e1"), "order-7", "same request")
    first_line = _audit_line(1.0, object="executions/e1")
    again = Intent(_record("e2"), "order-7", "same request")
    second_line = _audit_line(2.0, object="executions/e2")
    assert await cold.executions.record_intents([first], {"e1": first_line}) == ["e1"]
    assert await cold.executions.record_intents([again], {"e2": second_line}) == ["e1"]

    lines = await cold.audit_log.audit(AuditSearch())
    assert [line.object for line in lines] == ["executions/e1"]


def _record(execution_id: str) -> ExecutionRecord:
    return ExecutionRecord(execution_id, "flow", 1, ExecutionState.PENDING, b"{}", 1.0)


async def test_old_audit_lines_are_forgotten_in_portions_and_numbers_are_not_given_twice(
    stores: Stores,
) -> None:
    cold = stores.cold
    await cold.audit_log.write_audit([_audit_line(float(at)) for at in range(10)])
    numbers = [line.id for line in await cold.audit_log.audit(AuditSearch())]
    assert [await cold.audit_log.forget_audit(7.0, 4) for _ in range(3)] == [4, 3, 0]

    remaining = await cold.audit_log.audit(AuditSearch())
    assert [line.at for line in remaining] == [9.0, 8.0, 7.0]
    assert [line.id for line in remaining] == numbers[:3]

    await cold.audit_log.write_audit([_audit_line(10.0)])
    newest = (await cold.audit_log.audit(AuditSearch()))[0]
    assert newest.id > numbers[0]
