"""Who am I: what a page asks first, to show only what this caller may do."""

from __future__ import annotations

from pathlib import Path

from penstock.service.keys import SCOPES
from tests.api.asgi import EVERYWHERE, bearer
from tests.api.caller import Caller, assert_problem
from tests.api_server import running_service


def test_on_loopback_a_caller_without_a_key_may_do_everything(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        api = Caller(service.address)
        assert api.shown("/me") == {
            "open": True,
            "key_id": None,
            "name": None,
            "scopes": list(SCOPES),
        }
        api_key = api.post("/keys", {"name": "page", "scopes": ["submit"]}).body
        answer = api.call("GET", "/me", headers=bearer(api_key["key"]))
        assert answer.body == {
            "open": False,
            "key_id": api_key["id"],
            "name": "page",
            "scopes": ["read", "submit"],
        }


def test_each_key_is_told_all_that_its_scopes_include(tmp_path: Path) -> None:
    with running_service(tmp_path) as first:
        api = Caller(first.address)
        api_keys = {"admin": api.post("/keys", {"name": "admin", "scopes": ["admin"]}).body}
        assert_problem(api.get("/me"), 401, "unauthorized")
        admin = bearer(api_keys["admin"]["key"])
        for scope in SCOPES[:-1]:
            api_keys[scope] = api.call(
                "POST", "/keys", {"name": scope, "scopes": [scope]}, headers=admin
            ).body
    with running_service(tmp_path, host=EVERYWHERE) as service:
        api = Caller(service.address)
        for rank, scope in enumerate(SCOPES, start=1):
            key = api_keys[scope]
            answer = api.call("GET", "/me", headers=bearer(key["key"]))
            assert answer.status == 200
            expected = {
                "open": False,
                "key_id": key["id"],
                "name": scope,
                "scopes": list(SCOPES[:rank]),
            }
            assert answer.body == expected
        assert_problem(api.get("/me"), 401, "unauthorized")
        assert_problem(api.call("GET", "/me", headers=bearer("pk_wrong")), 401, "unauthorized")
