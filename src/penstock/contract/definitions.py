"""Workflow versions, inline documents, aliases, deletion, and what is known of handlers."""

import asyncio
import math
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.definition.model import HandlerDefaults, Retry
from penstock.errors import NotFound, SettingsError
from penstock.stores.base import Stores, WorkflowVersion
from penstock.stores.handlers import register_handlers
from penstock.stores.records import WorkflowRow


async def test_the_same_content_is_the_same_version_and_changed_content_the_next(
    stores: Stores,
) -> None:
    cold = stores.cold
    first = await cold.definitions.put_workflow("report", "hash-1", b"one", 1.0)
    second = await cold.definitions.put_workflow("report", "hash-2", b"two", 2.0)
    assert first == WorkflowVersion("report", 1, "hash-1", b"one", 1.0)
    assert second == WorkflowVersion("report", 2, "hash-2", b"two", 2.0)
    assert await cold.definitions.put_workflow("report", "hash-2", b"two", 3.0) == second
    assert await cold.definitions.put_workflow("report", "hash-1", b"one", 4.0) == first

    other = await cold.definitions.put_workflow("other", "hash-1", b"one", 5.0)
    assert other.version == 1


async def test_a_version_is_found_by_number_and_the_latest_without(stores: Stores) -> None:
    cold = stores.cold
    versions = [
        await cold.definitions.put_workflow("report", f"hash-{n}", f"text {n}".encode(), n)
        for n in (1.0, 2.0, 3.0)
    ]
    for version in versions:
        assert await cold.definitions.get_workflow("report", version.version) == version
    assert await cold.definitions.get_workflow("report") == versions[-1]

    missing = (("report", 4), ("report", 0), ("report", -1), ("unknown", None), ("unknown", 1))
    for name, number in missing:
        assert await cold.definitions.get_workflow(name, number) is None


async def test_the_same_content_from_many_at_once_is_one_version(stores: Stores) -> None:
    puts = (
        stores.cold.definitions.put_workflow("report", f"hash-{n % 2}", b"text", 1.0)
        for n in range(20)
    )
    versions = await asyncio.gather(*puts)
    numbers_by_content = {(version.content_hash, version.version) for version in versions}
    assert numbers_by_content in (
        {("hash-0", 1), ("hash-1", 2)},
        {("hash-1", 1), ("hash-0", 2)},
    )


async def test_an_inline_document_is_found_by_its_number_alone(stores: Stores) -> None:
    cold = stores.cold
    first = await cold.definitions.put_workflow("payroll", "hash-1", b"one", 1.0)
    inline = await cold.definitions.put_inline("payroll", "hash-2", b"two", 2.0)
    assert (inline.version, inline.document) == (2, b"two")
    assert await cold.definitions.put_inline("payroll", "hash-2", b"two", 3.0) == inline

    existing = await cold.definitions.put_inline("payroll", "hash-1", b"one", 3.0)
    assert existing == first, "it is a version already"
    assert await cold.definitions.get_workflow("payroll", 2) == inline
    assert await cold.definitions.get_workflow("payroll") == first
    assert await cold.definitions.versions("payroll") == [first]
    assert [(row.latest, row.versions) for row in await cold.definitions.workflows()] == [(1, 1)]
    with pytest.raises(NotFound):
        await cold.definitions.set_alias("payroll", "stable", {2: 100})


async def test_content_that_was_inline_first_is_a_new_version_when_it_is_stored(
    stores: Stores,
) -> None:
    cold = stores.cold
    inline = await cold.definitions.put_inline("payroll", "hash-1", b"one", 1.0)
    other = await cold.definitions.put_workflow("payroll", "hash-2", b"two", 2.0)
    stored = await cold.definitions.put_workflow("payroll", "hash-1", b"one", 3.0)
    assert [inline.version, other.version, stored.version] == [1, 2, 3]
    assert await cold.definitions.get_workflow("payroll") == stored


async def test_an_inline_document_does_not_bring_a_deleted_version_back(stores: Stores) -> None:
    cold = stores.cold
    await cold.definitions.put_workflow("payroll", "hash-1", b"one", 1.0)
    await cold.definitions.delete_workflow("payroll")
    inline = await cold.definitions.put_inline("payroll", "hash-1", b"one", 2.0)
    assert inline.version == 2
    assert await cold.definitions.get_workflow("payroll") is None
    assert not await cold.definitions.delete_workflow("payroll")


async def test_the_same_inline_document_from_many_at_once_is_stored_once(stores: Stores) -> None:
    puts = (
        stores.cold.definitions.put_inline("payroll", f"hash-{n % 2}", b"text", 1.0)
        for n in range(20)
    )
    versions = await asyncio.gather(*puts)
    assert {version.version for version in versions} == {1, 2}


async def test_handlers_are_remembered(stores: Stores) -> None:
    cold = stores.cold
    assert await cold.definitions.known_handlers() == {}

    plain = HandlerDefaults()
    retried = HandlerDefaults(retry=Retry(max_attempts=5))
    full = HandlerDefaults(Retry(2, 0.5, 3.0, math.inf, 0.0), 7.5, "gpu")
    await cold.definitions.remember_handlers({"b": plain, "a": full, "naïve ☃": retried})
    await cold.definitions.remember_handlers({})
    assert await cold.definitions.known_handlers() == {"a": full, "b": plain, "naïve ☃": retried}


async def test_of_what_is_said_about_a_handler_the_last_word_counts(stores: Stores) -> None:
    cold = stores.cold
    first = HandlerDefaults(queue="gpu")
    second = HandlerDefaults(timeout_seconds=9)
    await cold.definitions.remember_handlers({"a": first, "b": first})
    await cold.definitions.remember_handlers({"c": first, "b": second})
    assert await cold.definitions.known_handlers() == {"a": first, "b": second, "c": first}

    await cold.definitions.remember_handlers({"b": HandlerDefaults()})
    assert await cold.definitions.known_handlers() == {
        "a": first,
        "b": HandlerDefaults(),
        "c": first,
    }


async def test_many_may_say_something_about_the_same_handlers_at_once(stores: Stores) -> None:
    names = [f"handler-{number}" for number in range(3000)]
    declarations = [
        dict.fromkeys(names[::step], HandlerDefaults(queue=f"q{step}")) for step in (1, -1) * 5
    ]
    await asyncio.gather(
        *(stores.cold.definitions.remember_handlers(handlers) for handlers in declarations)
    )
    remembered = await stores.cold.definitions.known_handlers()
    assert sorted(remembered) == sorted(names)
    assert remembered in (declarations[0], declarations[1])


async def test_only_what_changed_about_handlers_is_written(stores: Stores) -> None:
    cold = stores.cold
    written: list[object] = []
    real = cold.definitions.remember_handlers

    async def remember(handlers: Mapping[str, HandlerDefaults]) -> None:
        written.append(dict(handlers))
        await real(handlers)

    cold.definitions.remember_handlers = remember  # type: ignore[method-assign]
    handlers = {"a": HandlerDefaults(queue="gpu"), "b": HandlerDefaults(timeout_seconds=8)}
    for _ in range(3):
        await register_handlers(cold.definitions, handlers)

    changed = {"b": HandlerDefaults(timeout_seconds=9)}
    await register_handlers(cold.definitions, handlers | changed)
    assert written == [handlers, changed]
    assert await cold.definitions.known_handlers() == handlers | changed


async def test_what_nobody_could_read_about_a_handler_is_refused(stores: Stores) -> None:
    wrongs: list[dict[str, Any]] = [
        {"timeout_seconds": "soon"},
        {"retry": {"max_attempts": []}},
        {"queue": object()},
    ]
    for wrong in wrongs:
        handlers = {"bad": HandlerDefaults(**wrong), "good": HandlerDefaults()}
        with pytest.raises(SettingsError, match="the handler 'bad'"):
            await register_handlers(stores.cold.definitions, handlers)
    assert await stores.cold.definitions.known_handlers() == {}


async def test_workflows_are_listed_by_name_with_their_versions_and_aliases(stores: Stores) -> None:
    cold = stores.cold
    assert await cold.definitions.workflows() == []

    puts = (("b", "one", 1.0), ("a", "one", 2.0), ("b", "two", 3.0), ("b", "one", 4.0))
    for name, content, now in puts:
        await cold.definitions.put_workflow(name, content, content.encode(), now)

    await cold.definitions.set_alias("b", "stable", {1: 100})
    await cold.definitions.set_alias("b", "next", {1: 90, 2: 10})
    assert await cold.definitions.workflows() == [
        WorkflowRow("a", 1, 1, 2.0, 2.0),
        WorkflowRow("b", 2, 2, 1.0, 3.0, {"stable": {1: 100}, "next": {1: 90, 2: 10}}),
    ]


async def test_a_list_of_workflows_goes_on_behind_a_name(stores: Stores) -> None:
    names = ["A", "a", "a b", "a%", "aé", "b", "é", "🦀"]
    for name in reversed(names):
        await stores.cold.definitions.put_workflow(name, "hash", b"text", 1.0)

    listed: list[str] = []
    after = None
    while page := await stores.cold.definitions.workflows(after, limit=3):
        listed += [row.name for row in page]
        after = listed[-1]

    assert listed == names


async def test_versions_are_listed_newest_first(stores: Stores) -> None:
    cold = stores.cold
    versions = [
        await cold.definitions.put_workflow("report", f"hash-{n}", b"text", float(n))
        for n in range(12)
    ]
    assert await cold.definitions.versions("report") == versions[::-1]
    assert await cold.definitions.versions("unknown") == []


async def test_a_deleted_workflow_is_gone_for_all_but_those_who_have_its_number(
    stores: Stores,
) -> None:
    cold = stores.cold
    first = await cold.definitions.put_workflow("report", "hash-1", b"one", 1.0)
    await cold.definitions.put_workflow("report", "hash-2", b"two", 2.0)
    await cold.definitions.set_alias("report", "stable", {1: 100})
    await cold.definitions.put_workflow("other", "hash-1", b"one", 3.0)
    assert await cold.definitions.delete_workflow("report")
    assert not await cold.definitions.delete_workflow("report")
    assert not await cold.definitions.delete_workflow("unknown")
    assert await cold.definitions.get_workflow("report") is None
    assert await cold.definitions.versions("report") == []
    assert await cold.definitions.aliases("report") == {}
    assert [row.name for row in await cold.definitions.workflows()] == ["other"]
    assert await cold.definitions.get_workflow("report", 1) == first
    with pytest.raises(NotFound, match="report@1"):
        await cold.definitions.set_alias("report", "stable", {1: 100})


async def test_deleted_content_that_comes_again_is_the_version_that_it_was(stores: Stores) -> None:
    cold = stores.cold
    contents = [f"hash-{n}" for n in (1, 2, 3)]
    versions = [
        await cold.definitions.put_workflow("report", content, b"text", 1.0) for content in contents
    ]
    await cold.definitions.delete_workflow("report")
    assert await cold.definitions.put_workflow("report", "hash-2", b"text", 9.0) == versions[1]
    assert await cold.definitions.get_workflow("report") == versions[1]
    assert await cold.definitions.versions("report") == [versions[1]]
    assert await cold.definitions.workflows() == [WorkflowRow("report", 2, 1, 1.0, 1.0)]

    newest = await cold.definitions.put_workflow("report", "hash-4", b"text", 9.0)
    assert newest.version == 4


async def test_an_alias_moves_and_goes(stores: Stores) -> None:
    cold = stores.cold
    for content in ("one", "two"):
        await cold.definitions.put_workflow("report", content, b"text", 1.0)

    await cold.definitions.set_alias("report", "stable", {1: 100})
    await cold.definitions.set_alias("report", "é 'x'", {1: 1, 2: 0})
    await cold.definitions.set_alias("report", "stable", {1: 90, 2: 10})
    assert await cold.definitions.aliases("report") == {
        "stable": {1: 90, 2: 10},
        "é 'x'": {1: 1, 2: 0},
    }
    assert await cold.definitions.remove_alias("report", "stable")
    assert not await cold.definitions.remove_alias("report", "stable")
    assert not await cold.definitions.remove_alias("unknown", "stable")
    assert await cold.definitions.aliases("report") == {"é 'x'": {1: 1, 2: 0}}
    assert await cold.definitions.aliases("unknown") == {}


async def test_an_alias_of_a_version_that_is_not_there_is_refused_and_the_old_one_stays(
    stores: Stores,
) -> None:
    cold = stores.cold
    await cold.definitions.put_workflow("report", "one", b"text", 1.0)
    await cold.definitions.set_alias("report", "stable", {1: 100})
    wrong_targets = (
        ("report", {1: 50, 2: 50}),
        ("report", {0: 1}),
        ("report", {2**70: 1}),
        ("unknown", {1: 1}),
    )
    for name, weights in wrong_targets:
        with pytest.raises(NotFound, match=name):
            await cold.definitions.set_alias(name, "stable", weights)
    assert await cold.definitions.aliases("report") == {"stable": {1: 100}}
