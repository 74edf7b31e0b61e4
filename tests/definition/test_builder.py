"""The same document, built in Python."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.definition import Retry, compile_document, parse
from penstock.definition.builder import Ref, Workflow, expression, text
from penstock.definition.model import HandlerDefaults
from tests.definition.documents import Outputs, problems_of


def resolved(flow: Workflow, name: str, outputs: dict[str, Any]) -> dict[str, Any]:
    plan = compile_document(flow.document(), strict=True).plan
    return plan.nodes[plan.numbers[name]].config.resolve(Outputs(outputs))[0]


def test_the_example_of_the_contract_is_the_document_that_json_would_be():
    flow = Workflow("report")
    user = flow.node("user", "call_external_service", url="https://example.com/{{ input.user_id }}")
    flow.node("letter", "llm_service", model="m", prompt=text("Dear {}", user["data"]["name"]))
    written = """
    {"name": "report", "dag": {"nodes": [
      {"id": "user", "handler": "call_external_service", "dependencies": [],
       "config": {"url": "https://example.com/{{ input.user_id }}"}},
      {"id": "letter", "handler": "llm_service", "dependencies": ["user"],
       "config": {"model": "m", "prompt": "Dear {{ nodes[\\"user\\"][\\"data\\"][\\"name\\"] }}"}}
    ]}}
    """
    assert flow.document() == parse(written)
    assert json.loads(json.dumps(flow.document())) == flow.document()
    plan = compile_document(flow.document(), strict=True).plan
    assert plan.nodes[1].dependencies == (0,)
    assert resolved(flow, "letter", {"user": {"data": {"name": "Ann"}}}) == {
        "model": "m",
        "prompt": "Dear Ann",
    }


def test_a_reference_makes_the_dependency_wherever_it_stands_and_once():
    flow = Workflow("w")
    a, b, c = (flow.node(name, "noop") for name in "abc")
    flow.node("end", "noop", x=[{"y": a["k"]}, (b, text("{} {}", c, a))], config={"z": a})
    letter = flow.document()["dag"]["nodes"][3]
    assert letter["dependencies"] == ["a", "b", "c"]
    config = resolved(flow, "end", {"a": {"k": 1}, "b": [2], "c": "three"})
    assert config == {"z": {"k": 1}, "x": [{"y": 1}, [[2], 'three {"k":1}']]}


def test_after_waits_without_using_anything():
    flow = Workflow("w")
    a, b = flow.node("a", "noop"), flow.node("b", "noop")
    flow.node("one", "noop", after=a)
    flow.node("named", "noop", after="b")
    flow.node("several", "noop", after=[a, "b"], x=b)
    flow.node("made", "noop", after=(ref for ref in (b, a)))
    dependencies = {raw["id"]: raw["dependencies"] for raw in flow.document()["dag"]["nodes"]}
    assert dependencies["one"] == ["a"]
    assert dependencies["named"] == ["b"]
    assert dependencies["several"] == ["b", "a"]
    assert dependencies["made"] == ["b", "a"]
    compile_document(flow.document())


def test_a_set_of_nodes_to_wait_for_is_always_the_same_document():
    flow = Workflow("w")
    names = [f"n{i}" for i in range(30)]
    refs = {flow.node(name, "noop") for name in names}
    flow.node("by name", "noop", after=set(names))
    flow.node("by reference", "noop", after=frozenset(refs))
    assert [raw["dependencies"] for raw in flow.document()["dag"]["nodes"][30:]] == [
        sorted(names)
    ] * 2


@pytest.mark.parametrize(
    "name",
    [
        "a.b",
        "a b",
        "é",
        "__class__",
        '"',
        "\\",
        "}}",
        "{{ x }}",
        "??",
        "nodes",
        "secrets",
        "input",
        "[0]",
        " ",
    ],
)
def test_any_id_can_be_referred_to(name: str):
    flow = Workflow("w")
    odd = flow.node(name, "noop")
    flow.node("other node", "noop")
    flow.node("end", "noop", x=odd["k"], y=text("<{}>", odd))
    assert flow.document()["dag"]["nodes"][2]["dependencies"] == [name]
    assert resolved(flow, "end", {name: {"k": 1}}) == {"x": 1, "y": '<{"k":1}>'}


@pytest.mark.parametrize(
    "key", ["a.b", "a[0]", "", " ", "0", "}}", "{{", "??", '"', "\\", "\n", "é", "output"]
)
def test_any_key_can_be_followed(key: str):
    flow = Workflow("w")
    user = flow.node("user", "noop")
    flow.node("end", "noop", x=user["deep"][key], y=user["list"][1])
    assert resolved(flow, "end", {"user": {"deep": {key: "found"}, "list": [0, 1]}}) == {
        "x": "found",
        "y": 1,
    }


def test_a_reference_is_the_text_of_a_template():
    assert (
        str(Ref("user")["items"][0])
        == repr(Ref("user")["items"][0])
        == '{{ nodes["user"]["items"][0] }}'
    )


def test_a_reference_cannot_be_looped_over():
    with pytest.raises(TypeError, match="isn't known until the workflow runs"):
        list(Ref("user"))


def test_text_may_have_any_number_of_places_and_keeps_what_is_written_around_them():
    flow = Workflow("w")
    user = flow.node("user", "noop")
    flow.node(
        "end",
        "noop",
        none=text("plain"),
        two=text("{}{}", user["a"], user["b"]),
        mixed=text("{{ input.x }} {}", user),
    )
    config = flow.document()["dag"]["nodes"][1]["config"]
    assert config["none"] == "plain"
    assert config["two"] == '{{ nodes["user"]["a"] }}{{ nodes["user"]["b"] }}'
    assert config["mixed"] == '{{ input.x }} {{ nodes["user"] }}'


@pytest.mark.parametrize(
    ("template", "count", "message"),
    [
        ("Dear {}", 0, "'Dear {}' has 1 places {} for 0 references"),
        ("Dear", 1, "'Dear' has 0 places {} for 1 references"),
        ("{} {}", 3, "'{} {}' has 2 places {} for 3 references"),
    ],
)
def test_text_with_the_wrong_number_of_references_is_refused_at_once(
    template: str, count: int, message: str
):
    with pytest.raises(ValueError, match="places") as error:
        text(template, *[Ref("a")] * count)
    assert str(error.value) == message


def test_a_second_node_of_the_same_id_is_refused_at_once():
    flow = Workflow("w")
    flow.node("a", "noop")
    with pytest.raises(ValueError, match="the workflow 'w' already has a node 'a'"):
        flow.node("a", "noop")


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("timeout", "timeout_seconds"),
        ("timeout_second", "timeout_seconds"),
        ("retries", "retry"),
        ("max_retries", "retry"),
        ("max_attempts", "retry"),
        ("retry_policy", "retry"),
        ("conditon", "condition"),
        ("trigger_rules", "trigger_rule"),
        ("queues", "queue"),
        ("queue_timeout", "queue_timeout_seconds"),
        ("optionl", "optional"),
        ("configs", "config"),
        ("on_dependency_fail", "on_dependency_failure"),
    ],
)
def test_a_near_miss_of_a_field_is_refused_with_the_right_name(name: str, field: str):
    flow = Workflow("w")
    keyword: dict[str, Any] = {name: 1}
    with pytest.raises(TypeError, match=rf"no field '{name}'; did you mean {field}=…\?"):
        flow.node("a", "echo", **keyword)
    flow.node("a", "echo", config={name: 1})
    assert flow.document()["dag"]["nodes"][0]["config"] == {name: 1}


@pytest.mark.parametrize("name", ["url", "times", "seconds", "operation", "input", "text", "query"])
def test_a_key_of_a_config_is_no_near_miss(name: str):
    keyword: dict[str, Any] = {name: 1}
    Workflow("w").node("a", "echo", **keyword)


@pytest.mark.parametrize("fields", [{"dependencies": ["b"]}, {"depends_on": ["b"]}])
def test_dependencies_by_another_name_are_refused_instead_of_becoming_config(
    fields: dict[str, Any],
):
    with pytest.raises(TypeError, match=r"name the nodes to wait for in after=\[…\]"):
        Workflow("w").node("a", "noop", **fields)


def test_every_field_of_a_node_goes_where_json_has_it():
    flow = Workflow("w", timeout_seconds=5, labels={"team": "x"}, input={"lang": "en"})
    flow.node("a", "noop", config={"condition": "of the config", "after": 1})
    flow.node(
        "b",
        "noop",
        after="a",
        condition="a.ok",
        trigger_rule="all_done",
        retry=Retry(max_attempts=2),
        timeout_seconds=3,
        queue="q",
        queue_timeout_seconds=4,
        optional=True,
        dead_letter=True,
        on_dependency_failure="fail",
    )
    flow.node("c", "noop", retry={"max_retries": 2})
    document = flow.document()
    assert document["timeout_seconds"] == 5
    assert document["dag"]["nodes"][0]["config"] == {"condition": "of the config", "after": 1}
    assert document["dag"]["nodes"][1] == {
        "id": "b",
        "handler": "noop",
        "dependencies": ["a"],
        "config": {},
        "condition": "a.ok",
        "trigger_rule": "all_done",
        "retry": {
            "max_attempts": 2,
            "initial_delay_seconds": 1.0,
            "multiplier": 2.0,
            "max_delay_seconds": 30.0,
            "jitter_seconds": 0.5,
        },
        "timeout_seconds": 3,
        "queue": "q",
        "queue_timeout_seconds": 4,
        "optional": True,
        "dead_letter": True,
        "on_dependency_failure": "fail",
    }
    plan = compile_document(document, strict=True).plan
    assert [plan_node.retry.max_attempts for plan_node in plan.nodes] == [4, 2, 3]


def test_a_handler_may_be_given_itself():
    class Handler:
        handler_name = "resize"

    flow = Workflow("w")
    flow.node("a", Handler())
    plan = compile_document(flow.document(), handlers={"resize": HandlerDefaults()}).plan
    assert plan.nodes[0].handler == "resize"


def test_what_is_no_handler_is_refused_at_once():
    def resize() -> None: ...

    with pytest.raises(TypeError, match=r"isn't a handler; decorate it with @penstock\.handler"):
        Workflow("w").node("a", resize)


def test_what_json_does_not_have_is_refused_with_its_place():
    flow = Workflow("w")
    flow.node("a", "noop", x=[{1, 2}])
    (problem,) = problems_of(flow.document())
    assert (problem.code, problem.path) == ("not_json", "dag.nodes[0].config.x[0]")


def test_a_forgotten_node_is_found_when_the_document_is_compiled():
    flow = Workflow("w")
    flow.node("a", "noop", x=Workflow("other").node("elsewhere", "noop"))
    assert {problem.code for problem in problems_of(flow.document())} == {
        "unknown_dependency",
        "unknown_reference",
    }


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20),
    st.lists(st.text(max_size=10) | st.integers(0, 3), max_size=4),
)
def test_every_path_from_every_id_finds_its_value(name: str, path: list[str | int]):
    value: Any = "found"
    for key in reversed(path):
        value = {key: value} if isinstance(key, str) else [None] * key + [value]
    flow = Workflow("w")
    ref = flow.node(name, "noop")
    for key in path:
        ref = ref[key]
    flow.node(f"{name}!", "noop", x=ref)
    assert resolved(flow, f"{name}!", {name: value}) == {"x": "found"}


def test_catches_take_references_ids_and_objects():
    flow = Workflow("w")
    a = flow.node("a", "noop")
    flow.node("b", "noop", catches=a)
    flow.node("c", "noop", catches=["a", {"node": a, "on": ["http:5xx"]}])
    nodes = flow.document()["dag"]["nodes"]
    assert nodes[1]["catches"] == ["a"]
    assert nodes[2]["catches"] == ["a", {"node": "a", "on": ["http:5xx"]}]
    assert "catches" not in nodes[0]


def test_how_a_node_has_ended_is_state_and_error():
    flow = Workflow("w")
    a = flow.node("a", "noop")
    odd = flow.node("a b", "noop")
    flow.node(
        "end",
        "echo",
        trigger_rule="all_done",
        config={
            "x": a.state,
            "y": a.error["message"],
            "z": text("{}!", odd.state),
            "v": a["state"],
        },
    )
    end = flow.document()["dag"]["nodes"][2]
    assert end["dependencies"] == ["a", "a b"]
    assert end["config"] == {
        "x": "{{ nodes.a.state }}",
        "y": "{{ nodes.a.error.message }}",
        "z": '{{ nodes["a b"].state }}!',
        "v": '{{ nodes["a"]["state"] }}',
    }
    compile_document(flow.document())


def test_an_expression_has_references_in_it():
    flow = Workflow("w")
    a = flow.node("a", "noop")
    b = flow.node("b", "echo", x=expression("{} * 1.2 > size({})", a["n"], a["items"]))
    switch = flow.switch("s", expression("{} + 1", b["x"]), {"2": "c", "default": ["d"]})
    flow.node("c", "noop", finally_=True)
    flow.node("d", "noop", after=switch)
    nodes = flow.document()["dag"]["nodes"]
    assert nodes[1]["config"] == {"x": '{{ nodes["a"]["n"] * 1.2 > size(nodes["a"]["items"]) }}'}
    assert nodes[1]["dependencies"] == ["a"]
    assert nodes[2]["switch"] == '{{ nodes["b"]["x"] + 1 }}'
    assert nodes[2]["cases"] == {"2": ["c"], "default": ["d"]}
    assert nodes[3]["finally"] is True
    compile_document(flow.document())
