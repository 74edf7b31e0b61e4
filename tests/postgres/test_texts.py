"""Any text is stored and found.

Also what PostgreSQL's own text can't hold, or what is too large for an index.
"""

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.events import Blob
from penstock.stores import codec
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.texts import blob_keys, escaped, unescaped
from penstock.stores.records import ApiKey, AuditLine, AuditSearch, Search
from tests.postgres.opened import new_intent, with_store

ODD = (
    "a\x00b",
    "\x00",
    "\ue000",
    "\ue0000",
    "\ue000\x00",
    "",
    "é 🦀",
    "".join(map(chr, range(33, 0xD800))),
)


@given(st.text(st.sampled_from("a0\x00\ue0001")), st.text(st.sampled_from("a0\x00\ue0001")))
def test_escaping_can_be_undone_and_keeps_texts_apart(one: str, other: str) -> None:
    assert unescaped(escaped(one)) == one
    assert "\x00" not in escaped(one)
    assert (escaped(one) == escaped(other)) == (one == other)


def test_blobs_are_found_in_what_names_them() -> None:
    blobs = [Blob(f"{number:064x}", number) for number in range(3)]
    data = codec.encode(
        [codec.encode({"a": blobs[0], "b": b'"blob"', "c": [blobs[1]]}), codec.encode(blobs[2])]
    )
    assert blob_keys(data) == {blob.key for blob in blobs}
    assert blob_keys(codec.encode({"a": "blob"})) == set()


@with_store
async def test_audit_lines_and_keys_of_any_text_are_stored_and_found(
    store: PostgresColdStore,
) -> None:
    for text in ODD:
        await store.audit_log.write_audit(
            [AuditLine(1.0, "", text, "act", text, text, 404, {"path": text})]
        )
        (line,) = await store.audit_log.audit(AuditSearch(object=text))
        assert (line.object, line.key_name, line.address, line.detail) == (
            text,
            text,
            text,
            {"path": text},
        )
    await store.api_keys.put_key(ApiKey("k", "odd\x00name", ("read",), b"", 1.0))
    assert [key.name for key in await store.api_keys.keys()] == ["odd\x00name"]


@with_store
async def test_labels_and_idempotency_keys_of_any_text_and_length_work(
    store: PostgresColdStore,
) -> None:
    for number, text in enumerate(ODD):
        name = f"e{number}"
        intent = new_intent(
            name, labels={text: text}, idempotency_key=text, key_scope=text, request_hash="h"
        )
        assert await store.executions.record_intents([intent]) == [name]
        assert [
            row.execution_id for row in await store.executions.search(Search(labels={text: text}))
        ] == [name]
        (row,) = await store.executions.search(Search(labels={text: text}))
        assert row.labels == {text: text}
        use = await store.executions.key_use(text, text)
        assert use is not None
        assert use.execution_id == name


@with_store
async def test_nothing_is_known_of_what_cannot_be_stored(store: PostgresColdStore) -> None:
    for odd in ("a\x00", "half \ud800", "x" * 100_000):
        assert await store.executions.execution(odd) is None
        assert await store.executions.intent(odd) is None
        assert await store.executions.intents([odd]) == {}
        assert await store.executions.history(odd) is None
        assert await store.definitions.get_workflow(odd) is None
        assert await store.definitions.versions(odd) == []
        assert await store.definitions.aliases(odd) == {}
        assert await store.definitions.workflows(odd) == []
        assert not await store.definitions.delete_workflow(odd)
        assert not await store.definitions.remove_alias(odd, odd)
        assert not await store.api_keys.revoke_key(odd, 1.0)
        assert await store.executions.key_use(odd, odd) is None
        for search in (
            Search(workflow=odd),
            Search(text=odd),
            Search(retry_of=odd),
            Search(labels={odd: odd}),
        ):
            assert await store.executions.search(search) == []
        assert await store.audit_log.audit(AuditSearch(object=odd, action=odd)) == []
