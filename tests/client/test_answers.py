"""Problem documents become exceptions, and an execution's JSON a result."""

import json

import pytest

from penstock import errors
from penstock.client.answers import error_from
from penstock.views.result import Result


def problem(status: int, code: str, **fields: object) -> bytes:
    return json.dumps(
        {"title": "t", "status": status, "detail": "what to do", "code": code, **fields}
    ).encode()


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "not_found", errors.NotFound),
        (409, "conflict", errors.Conflict),
        (422, "key_reused", errors.KeyReused),
        (422, "invalid_input", errors.InvalidInput),
        (401, "unauthorized", errors.Unauthorized),
        (403, "forbidden", errors.Unauthorized),
        (403, "foreign_host", errors.RequestFailed),
        (413, "body_too_large", errors.RequestFailed),
        (422, "invalid_request", errors.RequestFailed),
        (429, "rate_limited", errors.RateLimited),
        (503, "too_many_streams", errors.RateLimited),
        (503, "unavailable", errors.Unreachable),
        (500, "internal_error", errors.RequestFailed),
    ],
)
def test_each_code_has_its_exception(status: int, code: str, kind: type[Exception]):
    error = error_from(status, problem(status, code))
    assert type(error) is kind
    assert str(error).startswith("what to do")


def test_a_refused_workflow_has_all_its_problems():
    listed = [
        {"code": "cycle", "path": "dag.nodes", "message": "a → b → a", "node_id": None},
        {"code": "duplicate_id", "path": "dag.nodes[1].id", "message": "'a' again", "node_id": "a"},
    ]
    error = error_from(422, problem(422, "invalid_workflow", problems=listed))
    assert isinstance(error, errors.InvalidWorkflow)
    assert [problem_found.node_id for problem_found in error.problems] == [None, "a"]
    assert str(error) == "dag.nodes: a → b → a [cycle]\ndag.nodes[1].id: 'a' again [duplicate_id]"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, errors.Unauthorized),
        (404, errors.NotFound),
        (502, errors.Unreachable),
        (418, errors.RequestFailed),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>nginx</html>", b"[1]", b"\xff", b'{"detail": 7}'])
def test_what_a_proxy_answers_is_understood_by_its_status(
    status: int, kind: type[Exception], body: bytes
):
    assert type(error_from(status, body)) is kind


def test_a_missing_key_says_where_to_give_one():
    assert "PENSTOCK_API_KEY" in str(error_from(401, problem(401, "unauthorized")))


def test_a_result_has_the_properties_of_the_engines_result():
    nodes = {
        "a": {"state": "COMPLETED", "output": 1, "error": None},
        "b": {"state": "SKIPPED", "output": None},
    }
    view = {
        "execution_id": "e",
        "workflow": "w",
        "version": 3,
        "state": "COMPLETED",
        "output": {"a": 1},
        "input": {"x": 1},
        "error": None,
        "nodes": nodes,
    }
    result = Result.of_answer(view)
    assert isinstance(result, errors.PenstockError) is False
    assert (result.completed, result.output, result.outputs, result.input) == (
        True,
        {"a": 1},
        {"a": 1},
        {"x": 1},
    )
    assert (result.error, result.nodes, result["version"], result.view) == (None, nodes, 3, view)
    assert repr(result) == "<Result w@3 COMPLETED e>"
