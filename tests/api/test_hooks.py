"""Webhooks over HTTP: whose signature is good is let in, once for each message; nobody else."""

from __future__ import annotations

import hmac
import json
import logging
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from penstock.service.hooks import BODY_BYTES_MAX
from tests.api.caller import Answer, Caller, assert_problem
from tests.api.gates import GatedService, gated_service
from tests.waiting import until_now

SECRET = "canary-e5f1c0de-of-thirty-two-bytes"
OTHER_SECRET = "another-canary-e5f1c0de-secret"
STANDARD_KEY = b"canary-e5f1c0de-24-bytes"
META_TOKEN = "meta-canary-e5f1c0de"
CANARY = "e5f1c0de"
FOREIGN_CANARY = "7a11ab1e"
"""In credentials that aren't the hook's."""
SECRETS = {
    "GITHUB": SECRET,
    "NEXT": OTHER_SECRET,
    "STANDARD": "whsec_" + b64encode(STANDARD_KEY).decode(),
    "META": META_TOKEN,
}
ECHO = {
    "name": "echoed",
    "nodes": [{"id": "a", "handler": "echo", "config": {"e": "{{ input.e }}"}}],
}
STRICT = {
    **ECHO,
    "name": "strict",
    "input_schema": {"type": "object", "properties": {"e": {"type": "integer"}}, "required": ["e"]},
}
START = {"workflow": "echoed", "input": {"e": "{{ body }}"}}
GITHUB = {"scheme": "github", "secret": "GITHUB"}
STANDARD = {"scheme": "standard", "secret": "STANDARD"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hooks")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[GatedService]:
    (folder / "secrets.json").write_text(json.dumps(SECRETS))
    with gated_service(folder, secrets_file=str(folder / "secrets.json")) as running:
        for document in (ECHO, STRICT):
            assert running.api.post("/workflows", document).status == 201
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def put(api: Caller, hook_id: str, **document: Any) -> str:
    """Store a hook; answers its path."""
    made = {"verify": GITHUB, **({} if "signal" in document else {"start": START}), **document}
    answer = api.put(f"/hooks/{hook_id}", made)
    assert answer.status in (200, 201), answer
    path: str = answer.body["path"]
    return path


def signed(body: bytes, secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, sha256).hexdigest()
    return {"Content-Type": "application/json", "X-Hub-Signature-256": f"sha256={digest}"}


def standard(body: bytes, message_id: str, at: float | None = None) -> dict[str, str]:
    seconds = int(time.time() if at is None else at)
    content = f"{message_id}.{seconds}.".encode() + body
    signature = b64encode(hmac.new(STANDARD_KEY, content, sha256).digest()).decode()
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{signature}",
    }


def send(api: Caller, path: str, value: Any, **headers: str) -> Answer:
    """Send a request as GitHub signs it."""
    body = json.dumps(value).encode()
    return api.send("POST", path, body, {**signed(body), **headers})


def deliveries(api: Caller, hook_id: str) -> list[dict[str, Any]]:
    return api.items(f"/hooks/{hook_id}/deliveries")


def executions(api: Caller, workflow: str = "echoed") -> int:
    return len(api.items("/executions", workflow=workflow, limit=500))


def test_a_signed_request_starts_the_workflow_with_its_body(api: Caller) -> None:
    labels = {"order": "{{ body.id }}", "event": "{{ headers.x-event }}", "of": "{{ query.of }}"}
    path = put(api, "plain", start={**START, "labels": labels})
    answer = send(api, path + "?of=shop", {"id": 7, "é": "ü"}, **{"X-Event": "paid"})
    assert answer.status == 202
    ended = api.until_state(answer.body["execution_id"], "COMPLETED")
    assert ended["output"] == {"a": {"e": {"id": 7, "é": "ü"}}}
    assert ended["labels"] == {"order": 7, "event": "paid", "of": "shop"}

    (delivery,) = deliveries(api, "plain")
    assert (delivery["status"], delivery["outcome"]) == (202, "started")
    assert delivery["execution_id"] == answer.body["execution_id"]
    assert delivery["body"] == {"id": 7, "é": "ü"}
    assert delivery["query"] == {"of": "shop"}
    assert delivery["headers"]["x-event"] == "paid"


def test_a_request_that_isnt_signed_as_it_must_be_does_nothing_and_leaves_no_row(
    api: Caller,
) -> None:
    path = put(api, "closed")
    body = b'{"id": 1}'
    before = executions(api)
    bad: list[dict[str, str]] = [
        {},
        {"Content-Type": "application/json"},
        signed(body, OTHER_SECRET),
        signed(body + b" "),
        {**signed(body), "X-Hub-Signature-256": "sha256="},
    ]
    answers = [api.send("POST", path, body, headers) for headers in bad]
    answers.append(api.send("POST", "/hooks/nobody", body, signed(body)))
    answers.append(api.send("POST", "/hooks/Half%20a%20name", body, signed(body)))
    for answer in answers:
        assert answer.status == 401, answer
    # of a hook that isn't there and of one that is, they say the same
    details = {answer.body["detail"] for answer in answers[:-1]}
    assert len(details) == 1
    assert deliveries(api, "closed") == []
    assert executions(api) == before
    assert api.items("/audit", action="receive_hook") == [] or all(
        line["status"] != 401 for line in api.items("/audit", action="receive_hook")
    )


def test_the_spelling_of_the_path_is_exact(api: Caller) -> None:
    path = put(api, "spelled")
    body = b"{}"
    variants = [
        path + "/",
        "/" + path,
        path.replace("/hooks/", "/hooks//"),
        path.upper(),
        path + ";a=1",
        "/api/v1" + path,
        "/v1" + path,
    ]
    for target in variants:
        answer = api.send("POST", target, body, signed(body))
        assert answer.status in (401, 403, 404, 405), (target, answer)
    assert deliveries(api, "spelled") == []
    assert api.send("POST", path, body, signed(body)).status == 202


def test_a_secret_is_replaced_while_both_count(api: Caller) -> None:
    path = put(api, "rotated", verify={"scheme": "github", "secret": ["GITHUB", "NEXT"]})
    body = b"{}"
    for secret in (SECRET, OTHER_SECRET):
        assert api.send("POST", path, body, signed(body, secret)).status == 202
    put(api, "rotated", verify={"scheme": "github", "secret": "NEXT"})
    assert api.send("POST", path, body, signed(body)).status == 401


def test_a_request_that_is_too_old_is_refused(api: Caller) -> None:
    path = put(api, "timed", verify=STANDARD)
    body = b"{}"
    for at in (time.time() - 400, time.time() + 400):
        answer = api.send("POST", path, body, standard(body, "m1", at))
        assert answer.status == 401
        assert "second" not in answer.body["detail"]
    assert api.send("POST", path, body, standard(body, "m1")).status == 202


def test_the_same_message_gets_the_same_answer_and_starts_one_execution(api: Caller) -> None:
    path = put(api, "once", verify=STANDARD)
    body = b'{"n": 1}'
    first = api.send("POST", path, body, standard(body, "msg-1"))
    again = api.send("POST", path, body, standard(body, "msg-1", time.time() - 5))
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    other = api.send("POST", path, body, standard(body, "msg-2"))
    assert other.body != first.body
    assert len(deliveries(api, "once")) == 2


def test_the_name_of_a_message_may_be_in_its_body(api: Caller) -> None:
    path = put(api, "named", idempotency="{{ body.id }}", filter="body.kind == 'paid'")
    first = send(api, path, {"id": 7, "kind": "paid"})
    again = send(api, path, {"id": 7, "kind": "paid", "try": 2})
    assert first.body == again.body
    skipped = [send(api, path, {"id": "8", "kind": "other"}) for _ in range(2)]
    assert [(answer.status, answer.body) for answer in skipped] == [
        (200, {"skipped": "filter"})
    ] * 2
    nameless: dict[str, Any]
    for nameless in ({}, {"id": None}, {"id": ""}, {"id": True}, {"id": {}}, {"id": "x" * 600}):
        assert_problem(send(api, path, nameless), 422, "invalid_input")


def test_of_many_that_come_at_once_one_starts_an_execution(api: Caller) -> None:
    path = put(api, "crowded", idempotency="{{ body.id }}")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(api, path, {"id": "crowd"}), range(8)))
    started = {answer.body["execution_id"] for answer in answers if answer.status == 202}
    assert len(started) == 1
    busy = [answer for answer in answers if answer.status != 202]
    for answer in busy:
        assert_problem(answer, 409, "in_progress")
        assert int(answer.headers["retry-after"]) > 0
    assert len(deliveries(api, "crowded")) == 1


def test_a_request_that_was_wrong_may_be_sent_again_once_the_hook_is_right(api: Caller) -> None:
    path = put(api, "mended", idempotency="{{ body.id }}", filter="body.kind.startsWith('a')")
    assert send(api, path, {"id": 1}).status == 422
    put(api, "mended", idempotency="{{ body.id }}")
    assert send(api, path, {"id": 1}).status == 202


@pytest.mark.parametrize(
    "filter_",
    [
        "body.missing.x == 1",
        "body.n",
        "body.list[5] == 1",
        "1 / (body.n - 1) == 0",
        "body.text.matches('^a+') && body.n / 0 == 1",
        "body.list.map(x, body.list.size() + x).size() / 0 == 1",
    ],
)
def test_a_filter_that_cant_be_evaluated_is_the_requests_error(api: Caller, filter_: str) -> None:
    path = put(api, "raising", filter=filter_)
    answer = send(api, path, {"n": 1, "list": [1], "text": "a" * 30 + "!"})
    assert_problem(answer, 422, "invalid_input")
    delivery = deliveries(api, "raising")[0]
    assert (delivery["status"], delivery["outcome"]) == (422, "failed")
    assert delivery["detail"]
    assert delivery["body"]["n"] == 1


def test_a_costly_filter_is_evaluated_aside_and_says_the_same(api: Caller) -> None:
    path = put(api, "costly", filter="body.text.matches('^a+$') && headers['x-event'] == 'go'")
    assert send(api, path, {"text": "a" * 50_000}, **{"X-Event": "go"}).status == 202
    skipped = send(api, path, {"text": "a" * 50_000 + "b"}, **{"X-Event": "go"})
    assert (skipped.status, skipped.body) == (200, {"skipped": "filter"})
    assert [delivery["outcome"] for delivery in deliveries(api, "costly")] == ["skipped", "started"]


def test_an_input_that_doesnt_fit_is_refused_and_listed(api: Caller) -> None:
    start = {"workflow": "strict", "input": {"e": "{{ body.e }}"}}
    path = put(api, "strict", start=start)
    assert_problem(send(api, path, {"e": "text"}), 422, "invalid_input")
    assert_problem(send(api, path, {}), 422, "invalid_input")
    bodies = [b"{not json", b"\xff", b"[" * 5000 + b"]" * 5000, b'"\\ud800"']
    for body in bodies:
        assert_problem(api.send("POST", path, body, signed(body)), 422, "invalid_input")
    listed = deliveries(api, "strict")
    assert [delivery["status"] for delivery in listed] == [422] * 6
    assert "input_schema" in listed[-1]["detail"]
    assert executions(api, "strict") == 0

    path = put(api, "strict", start={"workflow": "strict", "input": "{{ body }}"})
    assert_problem(send(api, path, [1]), 422, "invalid_input")
    assert send(api, path, {"e": 1}).status == 202


def test_a_body_that_is_too_large_is_refused_before_anything_else(api: Caller) -> None:
    path = put(api, "sized")
    fits = b'"' + b"x" * (BODY_BYTES_MAX - 2) + b'"'
    assert api.send("POST", path, fits, signed(fits)).status == 202
    assert_problem(api.send("POST", path, fits + b" "), 413, "body_too_large")
    # without a length
    assert_problem(api.send("POST", path, iter([fits, b" "])), 413, "body_too_large")


def test_a_form_is_an_object_and_its_payload_alone_is_the_body(api: Caller) -> None:
    path = put(api, "form", answer={"wait_seconds": 20})
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    for fields, expected in (
        ({"command": "/go", "text": "é"}, {"command": "/go", "text": "é"}),
        ({"payload": '{"a": [1]}'}, {"a": [1]}),
        ({"payload": "no json"}, {"payload": "no json"}),
    ):
        body = urlencode(fields).encode()
        answer = api.send("POST", path, body, {**signed(body), **form})
        assert answer.status == 200, answer
        assert answer.body["output"] == {"a": {"e": expected}}


def test_an_answer_that_waits_has_the_output_also_the_second_time(api: Caller) -> None:
    path = put(api, "waiting", idempotency="{{ body.id }}", answer={"wait_seconds": 20})
    answers = [send(api, path, {"id": 1}) for _ in range(2)]
    for answer in answers:
        assert answer.status == 200
        assert answer.body["state"] == "COMPLETED"
        assert answer.body["output"] == {"a": {"e": {"id": 1}}}
    assert answers[0].body == answers[1].body


def test_a_signal_goes_to_who_waits_and_otherwise_a_workflow_is_started(api: Caller) -> None:
    config = {"name": "paid", "correlation": "{{ input.order }}"}
    order = {"name": "order", "nodes": [{"id": "paid", "handler": "signal", "config": config}]}
    execution_id = api.start(order, input={"order": "order-7"})
    until_now(lambda: api.items("/waits", correlation="order-7"))
    signal = {"name": "paid", "correlation": "{{ body.order }}", "payload": {"n": "{{ body.n }}"}}
    path = put(api, "both", start=START, signal=signal)

    answer = send(api, path, {"order": "order-7", "n": 3})
    assert (answer.status, answer.body) == (202, {"execution_id": execution_id, "signalled": 1})
    assert api.until_state(execution_id, "COMPLETED")["output"]["paid"]["payload"] == {"n": 3}

    other = send(api, path, {"order": "order-7", "n": 4})
    assert other.body["execution_id"] != execution_id
    assert "signalled" not in other.body
    outcomes = [delivery["outcome"] for delivery in deliveries(api, "both")]
    assert outcomes == ["started", "signalled"]
    # what was started isn't also a signal for who waits later
    late = api.start(order, input={"order": "order-7"})
    until_now(lambda: api.items("/waits", correlation="order-7"))
    assert api.shown(f"/executions/{late}")["state"] == "RUNNING"

    # a hook that only signals keeps the signal for who waits later
    path = put(api, "signals", signal=signal)
    assert send(api, path, {"order": 8, "n": 5}).body == {"signalled": 0}
    later = api.start(order, input={"order": "8"})
    assert api.until_state(later, "COMPLETED")["output"]["paid"]["payload"] == {"n": 5}
    lines = api.items("/audit", action="receive_hook", object="hooks/both")
    assert [line["detail"]["execution_id"] for line in lines] == [execution_id]


def test_a_start_is_in_the_audit_log_with_its_hook(api: Caller) -> None:
    path = put(api, "audited")
    execution_id = send(api, path, {}).body["execution_id"]
    (line,) = api.items("/audit", object=f"executions/{execution_id}")
    assert (line["action"], line["detail"]["hook_id"]) == ("receive_hook", "audited")


def test_a_delivery_is_delivered_again(api: Caller) -> None:
    path = put(api, "again", idempotency="{{ body.id }}", filter="has(body.kind)")
    first = send(api, path, {"id": 1, "kind": "é"}, **{"X-Event": "paid"})
    (delivery,) = deliveries(api, "again")
    target = f"/hooks/again/deliveries/{delivery['id']}/redeliver"
    redelivered = api.post(target)
    assert redelivered.status == 202
    assert redelivered.body["execution_id"] != first.body["execution_id"]
    newest = deliveries(api, "again")[0]
    assert newest["redelivery_of"] == delivery["id"]
    assert newest["body"] == delivery["body"]
    assert newest["headers"] == delivery["headers"]

    put(api, "again", filter="body.missing")
    assert_problem(api.post(target), 422, "invalid_input")
    assert_problem(api.post("/hooks/again/deliveries/987654321/redeliver"), 404, "not_found")
    assert_problem(api.post("/hooks/nobody/deliveries/1/redeliver"), 404, "not_found")


def test_a_trial_does_nothing(api: Caller) -> None:
    put(
        api,
        "tried",
        start={**START, "labels": {"order": "{{ body.id }}"}},
        filter="headers['x-event'] == 'paid'",
        idempotency="{{ body.id }}",
    )
    before = executions(api)
    body = {"body": {"id": 7}, "headers": {"X-Event": "paid"}}
    tried = api.post("/hooks/tried/test", body)
    assert tried.status == 200
    assert tried.body["outcome"] == "started"
    assert tried.body["input"] == {"e": {"id": 7}}
    assert tried.body["labels"] == {"order": 7}
    assert tried.body["message"] == "7"
    assert api.post("/hooks/tried/test", {**body, "headers": {}}).body["outcome"] == "failed"
    other = {"body": {"id": 7}, "headers": {"x-event": "other"}}
    assert api.post("/hooks/tried/test", other).body["outcome"] == "skipped"
    assert executions(api) == before
    assert deliveries(api, "tried") == []


def test_hooks_are_listed_changed_and_deleted(api: Caller) -> None:
    document = {"start": START, "verify": GITHUB}
    first = api.put("/hooks/crud", document)
    assert (first.status, first.body["created"]) == (201, True)
    assert first.body["document"] == {**document, "id": "crud"}
    second = api.put("/hooks/crud", {**document, "id": "crud", "filter": "true"})
    assert (second.status, second.body["created"]) == (200, False)
    assert second.body["created_at"] == first.body["created_at"]
    assert api.shown("/hooks/crud")["document"]["filter"] == "true"
    assert "crud" in {item["id"] for item in api.items("/hooks")}
    lines = api.items("/audit", action="put_hook", object="hooks/crud")
    assert [line["status"] for line in lines] == [200, 201]

    assert api.delete("/hooks/crud").status == 204
    for answer in (api.get("/hooks/crud"), api.delete("/hooks/crud"), api.get("/hooks/%00")):
        assert_problem(answer, 404, "not_found")
    assert_problem(api.get("/hooks/crud/deliveries"), 404, "not_found")


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"verify": None}, 422, "invalid_request"),
        ({"verify": {"scheme": "github", "secret": "UNKNOWN"}}, 422, "invalid_input"),
        ({"verify": {"scheme": "github", "secret": ""}}, 422, "invalid_request"),
        ({"verify": {"scheme": "github", "secret": []}}, 422, "invalid_request"),
        ({"verify": {"scheme": "github"}}, 422, "invalid_request"),
        ({"verify": {"scheme": "standard", "secret": "GITHUB"}}, 422, "invalid_input"),
        ({"verify": {"scheme": "hmac", "secret": "GITHUB"}}, 422, "invalid_input"),
        ({"challenge_secret": "UNKNOWN"}, 422, "invalid_input"),
        ({"start": {"workflow": "nobody"}}, 404, "not_found"),
        ({"start": {**START, "input": {"e": "{{ secrets.GITHUB }}"}}}, 422, "invalid_input"),
        ({"start": {**START, "input": {"e": "{{ body.a + 1 }}"}}}, 422, "invalid_input"),
        ({"filter": "input.a == 1"}, 422, "invalid_input"),
        ({"filter": "secrets.GITHUB == 'a'"}, 422, "invalid_input"),
        ({"filter": "size(body)"}, 422, "invalid_input"),
        ({"idempotency": "{{ nobody.id }}"}, 422, "invalid_input"),
        ({"answer": {"wait_seconds": 26}}, 422, "invalid_request"),
        ({"rate_limit": "many"}, 422, "invalid_input"),
        ({"id": "other"}, 422, "invalid_input"),
        ({"unknown": 1}, 422, "invalid_request"),
    ],
)
def test_a_hook_that_makes_no_sense_or_has_no_secret_is_refused(
    api: Caller, change: dict[str, Any], status: int, code: str
) -> None:
    document = {"start": START, "verify": GITHUB, **change}
    document = {key: value for key, value in document.items() if value is not None}
    answer = api.put("/hooks/refused", document)
    assert_problem(answer, status, code)
    assert_problem(api.get("/hooks/refused"), 404, "not_found")


def test_slack_and_meta_are_answered_when_an_address_is_entered(api: Caller) -> None:
    slack = put(api, "slack", verify={"scheme": "slack", "secret": "GITHUB"})
    body = json.dumps({"type": "url_verification", "challenge": "<b>c1</b>"}).encode()
    seconds = str(int(time.time()))
    digest = hmac.new(SECRET.encode(), f"v0:{seconds}:".encode() + body, sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": seconds,
        "X-Slack-Signature": f"v0={digest}",
    }
    answer = api.send("POST", slack, body, headers)
    assert (answer.status, answer.body) == (200, {"challenge": "<b>c1</b>"})
    assert api.send("POST", slack, body).status == 401

    meta = put(api, "meta", challenge_secret="META")
    asked = {"hub.mode": "subscribe", "hub.verify_token": META_TOKEN, "hub.challenge": "<b>2</b>"}
    answer = api.send("GET", f"{meta}?{urlencode(asked)}")
    assert (answer.status, answer.body) == (200, b"<b>2</b>")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    for wrong in ({"hub.verify_token": "no"}, {"hub.mode": "x"}, {"hub.challenge": ""}):
        assert api.send("GET", f"{meta}?{urlencode({**asked, **wrong})}").status == 401
    assert api.send("GET", meta).status == 401
    assert api.send("GET", f"{slack}?{urlencode(asked)}").status == 401


def test_a_hook_has_a_rate_limit_of_its_own(api: Caller) -> None:
    path = put(api, "limited", rate_limit="3/hour")
    other = put(api, "unlimited", rate_limit="off")
    statuses = [send(api, path, {}).status for _ in range(4)]
    assert statuses == [202, 202, 202, 429]
    refused = send(api, path, {})
    assert_problem(refused, 429, "rate_limited")
    assert int(refused.headers["retry-after"]) > 0
    assert send(api, other, {}).status == 202


def test_without_a_signature_a_hook_takes_only_json_from_this_machine(api: Caller) -> None:
    path = put(api, "none", verify="none")
    json_type = {"Content-Type": "application/json"}
    assert api.send("POST", path, b"{}", json_type).status == 202
    # what a page of another site can send, and what came through a proxy
    for headers, status in (
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({}, 415),
        ({**json_type, "Origin": "https://evil.example"}, 403),
        ({**json_type, "Host": "evil.example"}, 403),
        ({**json_type, "X-Forwarded-For": "203.0.113.7"}, 401),
    ):
        assert api.send("POST", path, b"{}", headers).status == status, headers


def test_nothing_secret_is_stored_logged_or_answered(
    server: GatedService, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Secrets are sent in every place that a request has, by who knows them."""
    api = server.api
    path = put(
        api,
        "canary",
        verify={"scheme": "gitlab", "secret": ["GITHUB", "NEXT"]},
        start={
            **START,
            "input": {"e": ["{{ body }}", "{{ headers }}", "{{ query }}"]},
            "labels": {"q": "{{ query.token ?? null }}"},
        },
        filter="body.ok",
    )
    with caplog.at_level(logging.DEBUG):
        headers = {
            "Content-Type": "application/json",
            "X-Gitlab-Token": SECRET,
            "X-Copy": f"Bearer {OTHER_SECRET}",
            # of a proxy, or of somebody else
            "Authorization": f"Bearer key-{FOREIGN_CANARY}",
            "Cookie": f"session={FOREIGN_CANARY}",
            "X-Hub-Signature-256": f"sha256={FOREIGN_CANARY}",
        }
        body = json.dumps({"ok": True, "token": SECRET, SECRET: OTHER_SECRET}).encode()
        target = f"{path}?{urlencode({'token': SECRET})}"
        answers = [api.send("POST", target, body, headers)]
        assert answers[0].status == 202, answers
        answers.append(api.send("POST", target, json.dumps({"ok": SECRET}).encode(), headers))
        answers.append(api.send("POST", target, SECRET.encode(), headers))
        answers.append(api.send("POST", target, body, {**headers, "X-Gitlab-Token": SECRET + "x"}))
        assert [answer.status for answer in answers[1:]] == [422, 422, 401]
        ended = api.until_state(answers[0].body["execution_id"], "COMPLETED")
        refused = api.put(
            "/hooks/pasted", {"start": START, "verify": {"scheme": "github", "secret": SECRET}}
        )
        assert refused.status == 422
    listed = deliveries(api, "canary")
    assert len(listed) == 3
    shown = [ended, listed, refused, api.items("/hooks"), api.items("/audit", limit=500), *answers]
    everything = [repr(shown)]
    # the access log has whole addresses, so there is none (`HttpServer`); pytest turns it on
    ours = [record for record in caplog.records if record.name != "uvicorn.access"]
    assert any("canary was refused" in record.getMessage() for record in ours)
    everything += [caplog.handler.format(record) for record in ours]
    for file in folder.rglob("*"):
        if file.is_file() and file.name != "secrets.json":
            everything.append(file.read_bytes().decode("latin-1"))
    for canary in (CANARY, FOREIGN_CANARY):
        assert not [text for text in everything if canary in text]
