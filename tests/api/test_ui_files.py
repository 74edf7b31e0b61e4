"""The files of the page, as the service gives them out."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.api.docs_page import render
from penstock.api.ui_files import FOLDER
from tests.api.caller import Answer, Caller
from tests.api_server import running_service


@pytest.fixture(scope="module")
def api(tmp_path_factory: Any) -> Iterator[Caller]:
    with running_service(tmp_path_factory.mktemp("pages")) as service:
        yield Caller(service.address)


def page(api: Caller, path: str = "/ui/", **headers: str) -> Answer:
    return api.send(
        "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def test_the_front_leads_to_the_page(api: Caller) -> None:
    for path in ("/", "/ui"):
        answer = page(api, path)
        assert (answer.status, answer.headers["location"]) == (307, "/ui/")


def test_every_address_under_ui_is_the_page(api: Caller) -> None:
    index = (FOLDER / "index.html").read_bytes()
    for path in (
        "/ui/",
        "/ui/executions",
        "/ui/executions/0192?node=a",
        "/ui/workflows/a%2Fb",
        "/ui/no-such-page",
    ):
        answer = page(api, path)
        assert (answer.status, answer.body) == (200, index), path


def test_the_policy_allows_nothing_but_the_pages_own_files(api: Caller) -> None:
    headers = page(api).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_page_has_no_inline_script_or_style_and_loads_nothing_from_elsewhere() -> None:
    text = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\ssrc=)", text) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", text) == []
    assert re.findall(r"""(?:src|href)=["'](?!/ui/)""", text) == []


def test_what_the_page_names_is_there_and_may_be_kept_for_ever(api: Caller) -> None:
    names = re.findall(r'"(/ui/assets/[^"]+)"', (FOLDER / "index.html").read_text(encoding="utf-8"))
    assert names
    for name in names:
        answer = page(api, name)
        assert answer.status == 200, name
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].startswith(("text/javascript", "text/css"))
    assert page(api).headers["cache-control"] == "no-cache"


def test_a_file_is_packed_for_who_takes_it_and_not_sent_twice(api: Caller) -> None:
    plain, packed = page(api), page(api, Accept_Encoding="br, gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    again = page(api, If_None_Match=plain.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_a_file_of_another_version_is_missing_and_says_what_to_do(api: Caller) -> None:
    answer = page(api, "/ui/assets/index-0000.js")
    assert answer.status == 404
    assert "load it again" in answer.body["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/ui/../api/app.py",
        "/ui/..%2f..%2fpyproject.toml",
        "/ui/assets/..%2f..%2fapi%2fapp.py",
        "/ui//etc/passwd",
    ],
)
def test_nothing_outside_of_the_page_is_given_out(api: Caller, path: str) -> None:
    answer = page(api, path)
    if answer.status == 200:
        assert answer.body == (FOLDER / "index.html").read_bytes()
    else:
        assert answer.status in {400, 404}


def test_a_package_without_the_page_has_its_routes_all_the_same(tmp_path: Path) -> None:
    from penstock.api.ui_files import page_routes  # noqa: PLC0415

    assert {getattr(route, "path", "") for route in page_routes(tmp_path).routes} == {
        "/",
        "/ui",
        "/ui/{path:path}",
    }


def test_the_description_runs_no_script_and_loads_nothing(api: Caller) -> None:
    answer = page(api, "/docs")
    assert answer.status == 200
    text = answer.body.decode()
    assert "/api/v1/executions/{execution_id}/retry" in text
    assert "StartExecutions" in text
    assert re.findall(r"<script|<link|<img|<iframe|\son\w+=|javascript:|@import|url\(", text) == []
    assert re.findall(r"""(?:src|href)=["'](?!#|/openapi\.json|/ui/)""", text) == []
    assert "//" not in re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", text, flags=re.DOTALL)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_what_the_document_holds_is_text_in_the_description() -> None:
    bad = "<script>alert(1)</script>'\"&"
    operation = {
        "summary": bad,
        "tags": [bad],
        "parameters": [{"name": bad, "in": "query", "description": bad}],
    }
    document = {
        "info": {"title": bad, "version": bad}, "paths": {bad: {"get": operation}},
        "components": {"schemas": {bad: {"description": bad}}},
    }  # fmt: skip
    assert "<script" not in render(document)


def test_every_answer_is_not_sniffed_and_not_stored(api: Caller) -> None:
    for target in (
        "/api/v1/executions",
        "/api/v1/me",
        "/health/live",
        "/api/v1/nothing",
        "/openapi.json",
        "/metrics",
    ):
        headers = page(api, target).headers
        assert headers["x-content-type-options"] == "nosniff", target
        assert headers["cache-control"] == "no-store", target
        assert "default-src 'none'" in headers.get(
            "content-security-policy", "default-src 'none'"
        ), target
    assert page(api, "/ui/").headers["cache-control"] == "no-cache", "the page has rules of its own"
