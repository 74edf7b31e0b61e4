"""The applications of docs/web-apps.md run as the page says, behind a real uvicorn."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.docs.commands import PATIENCE_SECONDS
from tests.docs.pages import blocks
from tests.waiting import until_now

PAGE = "docs/web-apps.md"
PASSWORD = "correct horse"
STARTED = re.compile(r"running on (http://\S+)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of the page, in the project that Django makes."""
    django(tmp_path, "-m", "django", "startproject", "mysite", ".")
    for block in blocks():
        if block.page == PAGE and block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    return tmp_path


def environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return {**own, "PYTHONUTF8": "1"}


def django(directory: Path, *arguments: str, **variables: str) -> None:
    subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env={**environment(), **variables},
        check=True,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )


@contextmanager
def uvicorn(directory: Path, app: str, *options: str) -> Iterator[str]:
    """The address of a server that is stopped as by Ctrl-C, and stops cleanly."""
    command = [sys.executable, "-m", "uvicorn", app, "--port", "0", *options]
    with subprocess.Popen(
        command, cwd=directory, env=environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        log = ""
        try:
            while (match := STARTED.search(log)) is None:
                line = process.stderr.readline()
                assert line, log
                log += line
            yield match[1]
        finally:
            process.terminate()
            log += process.communicate(timeout=PATIENCE_SECONDS)[1]
    assert "Application shutdown complete" in log
    assert "Traceback" not in log, log


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def call(method: str, url: str, body: str | None = None, **headers: str) -> Answer:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, parts.path, body, headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def signed_up(url: str, method: str = "POST") -> None:
    """The application starts one execution, and answers with its result."""
    first = call(method, f"{url}/signups/Ada")
    assert first.status == 202, first.text
    letter = call("GET", f"{url}/signups/Ada/letter")
    assert letter.json == {"welcome": {"text": "Welcome, Ada!"}}
    assert call(method, f"{url}/signups/Ada").json == first.json


def test_in_fastapi(folder: Path) -> None:
    with uvicorn(folder, "app:app") as url:
        signed_up(url)
        listed = call("GET", f"{url}/penstock/api/v1/executions").json
        assert [item["workflow"] for item in listed["items"]] == ["signup"]
        assert call("GET", f"{url}/penstock/ui/").status == 200
    with uvicorn(folder, "app:app", "--root-path", "/tools") as url:
        # the store is still there
        assert len(call("GET", f"{url}/penstock/api/v1/executions").json["items"]) == 1
        redirect = call("GET", f"{url}/penstock/")
        assert redirect.headers["Location"] == "/tools/penstock/ui/"


def test_a_dispatcher(folder: Path) -> None:
    with uvicorn(folder, "dispatcher:app") as url:
        assert call("GET", f"{url}/penstock/health").json["status"] == "ok"
        assert call("GET", f"{url}/elsewhere").status == 404


def test_beside_django(folder: Path) -> None:
    django(folder, "manage.py", "migrate")
    django(
        folder,
        *("manage.py", "createsuperuser", "--noinput", "--username=ada", "--email=a@example.org"),
        DJANGO_SUPERUSER_PASSWORD=PASSWORD,
    )
    with uvicorn(folder, "mysite.asgi:application") as url:
        signed_up(url, "GET")
        refused = call("GET", f"{url}/penstock/api/v1/executions")
        assert refused.status == 403
        assert "aren't signed in" in refused.json["detail"]

        cookies = sign_in(url)
        me = call("GET", f"{url}/penstock/api/v1/me", Cookie=cookies).json
        assert (me["name"], me["scopes"]) == ("ada", ["read", "submit", "approve", "operate"])
        listed = call("GET", f"{url}/penstock/api/v1/executions", Cookie=cookies).json
        assert [item["workflow"] for item in listed["items"]] == ["signup"]
        foreign = call(
            "POST",
            f"{url}/penstock/api/v1/executions",
            '{"workflow": "signup"}',
            Cookie=cookies,
            Origin="https://evil.example",
        )
        assert foreign.status == 403


def sign_in(url: str) -> str:
    """The cookies of a session, as a browser gets them by the form of the admin."""
    form = call("GET", f"{url}/admin/login/")
    [token] = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', form.text)
    [csrf] = re.findall(r"csrftoken=\w+", form.headers["Set-Cookie"])
    fields = {"username": "ada", "password": PASSWORD, "csrfmiddlewaretoken": token}
    answer = call(
        "POST",
        f"{url}/admin/login/",
        urlencode(fields),
        **{"Content-Type": "application/x-www-form-urlencoded", "Cookie": csrf},
    )
    assert answer.status == 302, answer.text
    sent = answer.headers.get_all("Set-Cookie") or []
    [session] = [cookie.partition(";")[0] for cookie in sent if cookie.startswith("sessionid=")]
    return session


def test_several_processes_with_a_service_that_owns_the_file(folder: Path) -> None:
    command = ["serve", "--port", "0", "--handlers", "mysite/work.py"]
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", *command],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as service:
        try:
            assert service.stdout is not None
            address = service.stdout.readline().rpartition(" ")[2].strip()
            page = folder / "with_service.py"
            page.write_text(page.read_text().replace("http://127.0.0.1:8000", address))
            with (
                uvicorn(folder, "with_service:app") as first_url,
                uvicorn(folder, page.stem + ":app") as second_url,
            ):
                answers = [call("POST", f"{url}/signups/Ada") for url in (first_url, second_url)]
                assert answers[0].status == 202, answers[0].text
                assert answers[0].json == answers[1].json
                results = f"{address}/api/v1/executions/{answers[0].json['id']}/results"
                until_now(lambda: call("GET", results).json["completed"])
        finally:
            service.terminate()


def test_a_second_process_on_the_file_is_told_why_it_cannot_start(folder: Path) -> None:
    with uvicorn(folder, "app:app"):
        second = subprocess.run(
            [sys.executable, "-m", "uvicorn", "app:app", "--port", "0"],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert second.returncode != 0
    assert "is in use by process" in second.stderr
