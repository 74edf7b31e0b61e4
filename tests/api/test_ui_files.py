"""The files of the built UI, as the service serves them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.api.docs_page import render
from penstock.api.ui_files import FOLDER, UiFiles
from penstock.errors import NotFound
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
    index = page(api).body
    assert b'<div id="root">' in index
    for path in (
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


def test_the_page_has_no_inline_script_or_style_and_loads_nothing_from_elsewhere(
    api: Caller,
) -> None:
    text = page(api).body.decode()
    assert re.findall(r"<script(?![^>]*\ssrc=)", text) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", text) == []
    assert re.findall(r"""(?:src|href)=["'](?!/ui/)""", text) == []


def assets_named_by_the_page(api: Caller) -> list[str]:
    names = re.findall(r'"(/ui/assets/[^"]+)"', page(api).body.decode())
    assert names
    return names


def test_assets_are_served_in_a_folder_of_their_version_and_cached_for_ever(api: Caller) -> None:
    for name in assets_named_by_the_page(api):
        answer = page(api, name)
        assert answer.status == 200, name
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith(("text/javascript", "text/css"))


def test_the_page_names_the_version_so_it_is_revalidated_each_time(api: Caller) -> None:
    first = page(api)
    assert first.headers["cache-control"] == "no-cache"
    again = page(api, If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def built(folder: Path, script: str) -> UiFiles:
    (folder / "assets").mkdir(parents=True)
    (folder / "assets" / "index.js").write_text(script, encoding="utf-8")
    (folder / "index.html").write_text('<script src="./assets/index.js">', encoding="utf-8")
    return UiFiles(folder)


def test_a_changed_asset_changes_the_version_and_the_page(tmp_path: Path) -> None:
    before = built(tmp_path / "before", "one()")
    same = built(tmp_path / "same", "one()")
    after = built(tmp_path / "after", "two()")
    assert before.version == same.version != after.version
    assert (
        before.find("").headers["ETag"]
        == same.find("").headers["ETag"]
        != after.find("").headers["ETag"]
    )
    assert after.find("").plain.decode() == f'<script src="/ui/assets/{after.version}/index.js">'
    assert after.find(f"assets/{after.version}/index.js").plain == b"two()"


def test_an_old_tab_gets_no_file_of_the_new_version(tmp_path: Path) -> None:
    before = built(tmp_path / "before", "one()")
    after = built(tmp_path / "after", "two()")
    for path in (
        f"assets/{before.version}/index.js",
        "assets/index.js",
        f"assets/{after.version}/other.js",
    ):
        with pytest.raises(NotFound, match="reload the UI"):
            after.find(path)


def test_names_of_built_files_have_no_hash_and_differ_in_more_than_case() -> None:
    names = [path.name for path in (FOLDER / "assets").iterdir()]
    assert "index.js" in names
    assert len({name.lower() for name in names}) == len(names), "some file systems ignore case"


def test_a_file_is_packed_for_who_takes_it_and_not_sent_twice(api: Caller) -> None:
    plain, packed = page(api), page(api, Accept_Encoding="br, gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    again = page(api, If_None_Match=plain.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_a_file_of_another_version_is_missing_and_says_what_to_do(api: Caller) -> None:
    for path in ("/ui/assets/0000000000000000/index.js", "/ui/assets/index.js"):
        answer = page(api, path)
        assert answer.status == 404
        assert "reload the UI" in answer.body["detail"]


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
        assert answer.body == page(api).body
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
    assert re.findall(r"""(?:src|href)=["'](?!#|openapi\.json|schema\.json|ui/)""", text) == []
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
        "info": {"title": bad, "version": bad},
        "paths": {bad: {"get": operation}},
        "components": {"schemas": {bad: {"description": bad}}},
    }
    assert "<script" not in render(document)


def test_every_answer_is_not_sniffed_and_not_stored(api: Caller) -> None:
    for target in (
        "/api/v1/executions",
        "/api/v1/me",
        "/health/live",
        "/api/v1/nothing",
        "/openapi.json",
        "/schema.json",
        "/metrics",
    ):
        headers = page(api, target).headers
        assert headers["x-content-type-options"] == "nosniff", target
        assert headers["cache-control"] == "no-store", target
        assert "default-src 'none'" in headers.get(
            "content-security-policy", "default-src 'none'"
        ), target
    assert page(api, "/ui/").headers["cache-control"] == "no-cache", "the page has rules of its own"
