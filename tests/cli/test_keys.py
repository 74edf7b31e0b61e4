"""`penstock keys`: on the store's file, also while a server has it open."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.config import Settings
from penstock.service.keys import CACHE_SECONDS, Keys
from penstock.stores.opening import open_stores
from tests.cli.commands import penstock

TOKEN = re.compile(r"pk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}\n")


def made(tmp_path: Path, *arguments: str) -> tuple[str, str]:
    done = penstock("keys", "create", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    token = TOKEN.fullmatch(done.stdout)
    assert token is not None, done.stdout
    return token[1], done.stdout.strip()


def listed(tmp_path: Path) -> list[dict[str, Any]]:
    api_keys: list[dict[str, Any]] = json.loads(
        penstock("keys", "list", "--json", cwd=tmp_path).stdout
    )["items"]
    return api_keys


def test_a_key_is_made_shown_once_listed_and_revoked(tmp_path):
    key_id, token = made(tmp_path, "--scope", "submit", "--name", "ci")
    assert token not in penstock("keys", "list", cwd=tmp_path).stdout
    (api_key,) = listed(tmp_path)
    assert (api_key["id"], api_key["name"], api_key["scopes"], api_key["revoked_at"]) == (
        key_id,
        "ci",
        ["submit"],
        None,
    )
    assert api_key["created_at"].endswith("Z")
    revoked = penstock("keys", "revoke", key_id, cwd=tmp_path)
    assert (revoked.returncode, revoked.stdout, revoked.stderr) == (0, f"revoked {key_id}\n", "")
    assert listed(tmp_path)[0]["revoked_at"] is not None
    again = penstock("keys", "revoke", key_id, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith(f"penstock keys: there is no key {key_id} that could be revoked")
    assert "'penstock keys list' lists the keys" in again.stderr


def test_the_secret_is_nowhere_in_the_store(tmp_path):
    _, token = made(tmp_path, "--scope", "admin")
    secret = token.split("_", 2)[2].encode()
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert any(path.name == "penstock.db" for path in files)
    assert not [path for path in files if secret in path.read_bytes()]


def test_a_key_has_the_scopes_that_were_named(tmp_path):
    done = penstock(
        "keys", "create", "--scope", "operate", "--scope", "read", "--json", cwd=tmp_path
    )
    api_key = json.loads(done.stdout)
    assert (api_key["name"], api_key["scopes"]) == ("operate read", ["read", "operate"])
    assert TOKEN.fullmatch(api_key["key"] + "\n")
    assert done.stderr == ""


def test_hints_name_the_store_that_was_named(tmp_path):
    store = ("--store", "sqlite:///work.db")
    done = penstock("keys", "create", "--scope", "read", *store, cwd=tmp_path)
    token = TOKEN.fullmatch(done.stdout)
    assert token is not None
    command = f"penstock keys revoke {token[1]} --store sqlite:///work.db"
    assert f"'{command}' revokes it" in done.stderr
    revoked = penstock(*command.split()[1:], "--json", cwd=tmp_path)
    assert json.loads(revoked.stdout) == {"id": token[1], "revoked": True}
    again = penstock(*command.split()[1:], cwd=tmp_path)
    assert "'penstock keys list --store sqlite:///work.db' lists the keys" in again.stderr


def test_a_key_can_be_revoked_by_itself(tmp_path):
    key_id, token = made(tmp_path, "--scope", "read")
    assert penstock("keys", "revoke", token, cwd=tmp_path).stdout == f"revoked {key_id}\n"


def test_the_list_is_a_table(tmp_path):
    first, _ = made(tmp_path, "--scope", "read", "--name", "a dashboard")
    second, _ = made(tmp_path, "--scope", "admin", "--name", "é" * 10)
    lines = penstock("keys", "list", cwd=tmp_path).stdout.splitlines()
    assert lines[0].split() == ["ID", "SCOPES", "CREATED", "REVOKED", "NAME"]
    assert [line.split()[0] for line in lines[1:]] == [first, second]
    assert lines[1].endswith("a dashboard")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["create"], "--scope"),
        (["create", "--scope", "root"], "'root' is not one of"),
        (["create", "--scope", "read", "--name", "a\nb"], "name: a text of 1 to 200 characters"),
        (["create", "--scope", "read", "--name", ""], "name: a text of 1 to 200 characters"),
        (["create", "--scope", "read", "--store", "memory://"], "name a file with --store"),
        (["create", "--scope", "read", "--store", "sqlite:///missing/x.db"], "doesn't exist"),
        (["revoke"], "ID"),
        (["revoke", "3f0c9a1be274"], "there is no store penstock.db"),
        (["list"], "there is no store penstock.db"),
    ],
)
def test_what_can_not_be_used_is_told_and_nothing_is_made(tmp_path, arguments, told):
    done = penstock("keys", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_something_else_stays_as_it_is(tmp_path):
    file = tmp_path / "penstock.db"
    file.write_bytes(b"something else entirely, and longer than a header of a hundred bytes" * 10)
    before = file.read_bytes()
    done = penstock("keys", "create", "--scope", "read", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "isn't a store of Penstock" in done.stderr
    assert file.read_bytes() == before


def test_keys_are_made_and_revoked_while_a_server_has_the_store_open(tmp_path):
    """The engine's lock keeps a second engine out, not this."""

    async def scenario() -> None:
        clock = [0.0]
        stores = open_stores(f"sqlite:///{tmp_path / 'penstock.db'}", Settings())
        try:
            keys = Keys(stores.cold.api_keys, lambda: clock[0])
            assert not await keys.any()
            key_id, token = await asyncio.to_thread(
                made, tmp_path, "--scope", "submit", "--name", "ci"
            )
            checked = await keys.check(token)
            assert checked is not None
            assert (checked.id, checked.name, checked.scopes) == (key_id, "ci", ("submit",))
            revoked = await asyncio.to_thread(penstock, "keys", "revoke", key_id, cwd=tmp_path)
            assert revoked.returncode == 0, revoked.stderr
            clock[0] += CACHE_SECONDS
            assert await keys.check(token) is None
            await keys.create("after", ["read"])  # the server's own writer goes on
        finally:
            await stores.close()

    asyncio.run(scenario())
    assert [key["name"] for key in listed(tmp_path)] == ["ci", "after"]


@pytest.mark.parametrize("command", [[], ["create"], ["list"], ["revoke"]])
def test_the_help_has_an_example(command, tmp_path):
    done = penstock("keys", *command, "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "penstock keys" in done.stdout.partition("Example")[2]
    assert list(tmp_path.iterdir()) == []
