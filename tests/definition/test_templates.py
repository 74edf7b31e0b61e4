"""References: what `{{ … }}` means, and what it never does."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.definition.config import SecretText
from penstock.definition.model import OUTPUT_ALIASES
from penstock.definition.plan import PlanNode
from penstock.definition.template import (
    REFERENCE_CHARACTERS_MAX,
    Missing,
    Reference,
    Scope,
    TemplateError,
    parse_text,
    render,
)
from tests.definition.documents import Outputs, assert_linear, node, plan_of, problem_of
from tests.sizes import explored, size

USER = {
    "name": "Ann",
    "age": 42,
    "vip": True,
    "none": None,
    "items": [{"id": 7}, {"id": 8}],
    "0": "zero",
    "a.b": "dotted",
    "": "empty",
    "}}": "braces",
    "??": "marks",
    "x y": "blank",
    "é": "accent",
}
SCOPE = Outputs(
    {"user": USER, "list": [1, [2]], "text": "plain"},
    input_value={"lang": "en", "deep": {"er": [1]}},
)


def rendered(
    text: str, scope: Scope = SCOPE, node_ids: tuple[str, ...] = ("user", "list", "text")
) -> Any:
    return render(parse_text(text, node_ids), scope)


def malformed(text: str, node_ids: tuple[str, ...] = ("user", "list", "text")) -> tuple[str, str]:
    with pytest.raises(TemplateError) as error:
        parse_text(text, node_ids)
    return error.value.code, str(error.value)


def missing(
    text: str, scope: Scope = SCOPE, node_ids: tuple[str, ...] = ("user", "list", "text")
) -> str:
    with pytest.raises(Missing) as error:
        rendered(text, scope, node_ids)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ user }}", USER),
        ("{{ list }}", [1, [2]]),
        ("{{ user.name }}", "Ann"),
        ("{{ user.items.0.id }}", 7),
        ("{{ user.items[1].id }}", 8),
        ("{{ user.items[1]['id'] }}".replace("'", '"'), 8),
        ("{{ list.1.0 }}", 2),
        ("{{ list[1][0] }}", 2),
        ("{{ user.0 }}", "zero"),
        ("{{ user[0] }}", "zero"),
        ('{{ user["a.b"] }}', "dotted"),
        ('{{ user[""] }}', "empty"),
        ('{{ user["}}"] }}', "braces"),
        ('{{ user["??"] }}', "marks"),
        (r'{{ user["\u00e9"] }}', "accent"),
        ("{{ user.x y }}", "blank"),
        ("{{ user.é }}", "accent"),
        ('{{ nodes["user"].name }}', "Ann"),
        ('{{ nodes [ "user" ] [ "items" ] [ 0 ] . id }}', 7),
    ],
)
def test_a_reference_is_a_look_up(text: str, value: Any):
    assert rendered(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "{{user.name}}",
        "{{  user.name}}",
        "{{user . name }}",
        "{{\n\tuser\n.\nname\n}}",
        "{{ user.name\u00a0}}",
    ],
)
def test_blanks_inside_the_braces_do_not_matter(text: str):
    assert rendered(text) == "Ann"


@pytest.mark.parametrize(
    "value", [42, 1.5, True, False, None, "text", "", [1, [2]], {"a": {}}, [], {}]
)
def test_a_string_that_is_one_reference_keeps_the_type(value: Any):
    result = rendered("{{ a }}", Outputs({"a": value}), ("a",))
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Dear {{ user.name }}!", "Dear Ann!"),
        (" {{ user.age }}", " 42"),
        ("{{ user.age }}{{ user.vip }}", "42true"),
        ("{{ user.none }}.", "null."),
        ("{{ user.items }}.", '[{"id":7},{"id":8}].'),
        ("{{ text }} é {{ list }}", "plain é [1,[2]]"),
        ("no braces", "no braces"),
        ("} }} { {", "} }} { {"),
        ("{{ text }}}", "plain}"),
        ("", ""),
    ],
)
def test_inside_text_strings_go_in_as_they_are_and_the_rest_as_json(text: str, value: str):
    assert rendered(text) == value


@pytest.mark.parametrize(
    ("output", "text", "value"),
    [
        ({"a": 1}, "{{ n.output.a }}", 1),
        ({"a": 1}, "{{ n.output }}", {"a": 1}),
        ([5], "{{ n.output.0 }}", 5),
        ("text", "{{ n.output }}", "text"),
        (None, "{{ n.output }}", None),
        ({"output": {"a": 2}, "a": 1}, "{{ n.output.a }}", 2),
        ({"output": None, "a": 1}, "{{ n.output }}", None),
        ({"a": {"b": 1}}, "{{ n.output.a.b }}", 1),
    ],
)
def test_output_is_the_output_itself_when_there_is_no_such_key(output: Any, text: str, value: Any):
    assert rendered(text, Outputs({"n": output}), ("n",)) == value


def test_output_has_that_meaning_only_directly_after_a_node():
    assert (
        missing("{{ input.output.lang }}")
        == "{{ input.output.lang }}: input has no key 'output'; it has: lang, deep"
    )
    assert "has no key 'output'" in missing("{{ user.items.0.output }}")


@pytest.mark.parametrize("root", ["input", "params"])
def test_input_and_params_are_the_input_of_the_execution(root: str):
    assert rendered(f"{{{{ {root}.lang }}}}") == "en"
    assert rendered(f"{{{{ {root} }}}}") == {"lang": "en", "deep": {"er": [1]}}
    assert rendered(f"{{{{ {root}.deep.er[0] }}}}") == 1


@pytest.mark.parametrize("name", ["input", "params", "execution", "nodes"])
def test_a_node_of_that_name_wins(name: str):
    scope = Outputs({name: {"id": "from the node"}}, input_value={"id": "from the input"})
    assert rendered(f"{{{{ {name}.id }}}}", scope, (name,)) == "from the node"


def test_a_node_called_nodes_does_not_hide_the_others():
    scope = Outputs({"nodes": {"a": 1}, "a": 2})
    assert rendered('{{ nodes["a"] }}', scope, ("nodes", "a")) == 2
    assert rendered("{{ nodes.a }}", scope, ("nodes", "a")) == 1
    assert rendered('{{ nodes["nodes"].a }}', scope, ("nodes", "a")) == 1


def test_the_execution_has_an_id_a_workflow_and_a_version():
    text = "{{ execution.id }} {{ execution.workflow }} {{ execution.version }}"
    assert rendered(text) == "the-execution the-workflow 3"
    assert rendered("{{ execution.version }}") == 3


def test_the_longest_known_id_wins():
    scope = Outputs({"a": {"b": {"c": 1}, "x": 5}, "a.b": {"c": 2}, "a.b.c": 3, "a b": {"c": 4}})
    node_ids = ("a", "a.b", "a.b.c", "a b")
    assert rendered("{{ a.b.c }}", scope, node_ids) == 3
    assert rendered("{{ a.b.c }}", scope, ("a", "a.b")) == 2
    assert rendered("{{ a.b.c }}", scope, ("a",)) == 1
    assert rendered("{{ a b.c }}", scope, node_ids) == 4
    assert rendered("{{ a.x }}", scope, node_ids) == 5


@pytest.mark.parametrize(
    "name",
    ["NFCORE.RNASEQ.FASTQC_1", "a b", "é", "__class__", "a-b", "x:y/z", "5", 'say "hi"', "a[0]"],
)
def test_odd_ids_can_be_written_as_they_are(name: str):
    assert rendered(f"{{{{ {name}.x }}}}", Outputs({name: {"x": 1}}), (name,)) == 1


@pytest.mark.parametrize(
    "name", ["}}", "{{ a }}", "??", "a ?? b", 'q"\\', " ", "\t", "secrets", "nodes", "]", '"]']
)
def test_every_id_can_be_written_in_brackets(name: str):
    text = f"{{{{ nodes[{json.dumps(name)}].x }}}}"
    assert rendered(text, Outputs({name: {"x": 1}}), (name,)) == 1
    assert rendered(f"<{text}>", Outputs({name: {"x": 1}}), (name,)) == "<1>"


def test_what_came_from_an_output_is_never_read_as_a_template_again():
    hostile = "{{ secrets.TOKEN }} {{ user.name }} {{ nope"
    scope = Outputs({"a": {"x": hostile, "{{ user }}": 1}})
    assert rendered("{{ a.x }}", scope, ("a",)) == hostile
    assert rendered("<{{ a.x }}{{ a.x }}>", scope, ("a",)) == f"<{hostile}{hostile}>"
    assert rendered('{{ a["{{ user }}"] }}', scope, ("a",)) == 1
    assert rendered('{{ a.y ?? "{{ user }}" }}', scope, ("a",)) == "{{ user }}"


@pytest.mark.fault("security", "references to attributes and methods")
def test_references_are_look_ups_and_never_attributes():
    assert "has no key '__class__'" in missing("{{ user.__class__ }}")
    assert (
        missing("{{ text.upper }}") == "{{ text.upper }}: text is \"plain\", so it has no 'upper'"
    )
    assert rendered("{{ a.__class__ }}", Outputs({"a": {"__class__": 1}}), ("a",)) == 1


class TestMissingKeys:
    def test_the_reference_and_the_keys_that_exist_are_named(self):
        scope = Outputs({"user": {"data": {"name": 1, "mail": 2}}})
        assert missing("{{ user.data.nmae }}", scope) == (
            "{{ user.data.nmae }}: user.data has no key 'nmae'; it has: name, mail"
        )
        assert (
            missing("Dear {{ user.nope }}", scope)
            == "{{ user.nope }}: user has no key 'nope'; it has: data"
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{{ list.2 }}", "{{ list.2 }}: list is a list of 2; '2' isn't in it"),
            ("{{ list.-1 }}", "{{ list.-1 }}: list is a list of 2; '-1' isn't in it"),
            ("{{ list.first }}", "{{ list.first }}: list is a list of 2; 'first' isn't in it"),
            ("{{ user.age.x }}", "{{ user.age.x }}: user.age is 42, so it has no 'x'"),
            ("{{ user.none.x }}", "{{ user.none.x }}: user.none is null, so it has no 'x'"),
            ("{{ input.nope }}", "{{ input.nope }}: input has no key 'nope'; it has: lang, deep"),
            (
                '{{ user.items[0]["b"] }}',
                "{{ user.items[0][\"b\"] }}: user.items.0 has no key 'b'; it has: id",
            ),
        ],
    )
    def test_every_way_to_miss(self, text: str, message: str):
        assert missing(text) == message

    def test_only_some_of_many_keys_are_shown(self):
        scope = Outputs({"a": {f"k{i}": i for i in range(1000)} | {"x" * 1000: 1}, "b": {}})
        assert missing("{{ a.z }}", scope, ("a",)).endswith(
            "; it has: " + ", ".join(f"k{i}" for i in range(20)) + ", …"
        )
        assert missing("{{ b.z }}", scope, ("b",)) == "{{ b.z }}: b has no key 'z'; it has: none"


class TestFallbacks:
    @pytest.mark.parametrize(
        "literal",
        [
            '"text"',
            '""',
            '"}}"',
            '"a ?? b"',
            r'"\"\u00e9"',
            "0",
            "-1.5e3",
            "true",
            "false",
            "null",
            "[]",
            "{}",
            '{"a":{"b":{}}}',
            '[{"a":[1,{"b":"}}"}]}]',
            '{ "a" : [ 1 ] }',
        ],
    )
    @pytest.mark.parametrize("space", ["", " ", "\n"])
    def test_any_json_literal_can_stand_in(self, literal: str, space: str):
        text = f"{{{{{space}user.nope{space}??{space}{literal}{space}}}}}"
        assert rendered(text) == json.loads(literal)
        assert rendered(f"<{text}>").startswith("<")

    def test_a_fallback_is_not_used_when_the_key_is_there(self):
        assert rendered('{{ user.name ?? "nobody" }}') == "Ann"
        assert rendered("{{ user.none ?? 1 }}") is None

    @pytest.mark.parametrize(
        "text", ["{{ list.9 ?? 1 }}", "{{ user.age.x ?? 1 }}", "{{ input.nope ?? 1 }}"]
    )
    def test_every_miss_has_one(self, text: str):
        assert rendered(text) == 1

    def test_a_node_without_an_output_has_one(self):
        class Skipped(Outputs):
            def output(self, node_id: str) -> Any:
                raise Missing(f"{node_id!r} has no output")

        assert rendered("{{ user ?? 1 }}", Skipped({})) == 1
        assert missing("{{ user }}", Skipped({})) == "'user' has no output"

    def test_several_in_one_text(self):
        assert rendered('{{ user.a ?? {"b":{}} }} and {{ user.c ?? "}}" }}') == '{"b":{}} and }}'

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "{{ user ?? }}",
                "after ?? comes a JSON literal such as \"text\", 0 or null, not '}}'",
            ),
            ("{{ user ??", "after ?? comes a JSON literal such as \"text\", 0 or null, not ''"),
            (
                "{{ user ?? 'x' }}",
                'after ?? comes a JSON literal such as "text", 0 or null, not "\'x\' }}"',
            ),
            (
                "{{ user ?? list }}",
                "after ?? comes a JSON literal such as \"text\", 0 or null, not 'list }}'",
            ),
            ("{{ user ?? 1 2 }}", "expected }} after the fallback, not '2 }}'"),
            ("{{ user ?? 1 ?? 2 }}", "expected }} after the fallback, not '?? 2 }}'"),
            (
                "{{ user ?? NaN }}",
                "the fallback after ??: NaN and infinity aren't JSON; use null or a number",
            ),
            (
                "{{ user ?? 1e999 }}",
                "the fallback after ??: NaN and infinity aren't JSON; use null or a number",
            ),
            (
                r'{{ user ?? "\u0000" }}',
                "the fallback after ??: the character U+0000 isn't allowed; remove it",
            ),
            (
                r'{{ user ?? "\ud800" }}',
                (
                    "the fallback after ??: half of a surrogate pair isn't text;"
                    " write the whole character"
                ),
            ),
            (
                '{{ user ?? {"a": 1, "a": 2} }}',
                "the fallback after ??: the key 'a' stands twice in one object; remove one of them",
            ),
            (
                "{{ user ?? " + "[" * 70 + "1" + "]" * 70 + " }}",
                "the fallback after ??: nested deeper than 64 levels",
            ),
        ],
    )
    def test_what_is_no_literal_is_refused(self, text: str, message: str):
        assert malformed(text) == ("malformed_template", message)

    def test_a_fallback_that_is_far_too_deep_or_too_large_is_refused(self):
        for literal in ("[" * 100_000, "9" * 5000):
            assert malformed("{{ user ?? " + literal + " }}")[0] == "malformed_template"


class TestAliases:
    @pytest.mark.parametrize("key", ["response", "result", "body", "fetched_content"])
    def test_of_a_call_read_data(self, key: str):
        output = {"status_code": 200, "data": {"x": 1}}
        assert self.resolved("call_external_service", f"{{{{ n.{key}.x }}}}", output) == 1
        assert self.resolved("http_request", f"{{{{ n.output.{key} }}}}", output) == {"x": 1}

    @pytest.mark.parametrize("key", ["text", "answer", "result", "generation", "data"])
    def test_of_a_model_read_response(self, key: str):
        assert self.resolved("llm", f"{{{{ n.{key} }}}}", {"response": "hello"}) == "hello"

    def test_give_way_to_keys_that_are_there(self):
        assert self.resolved("http_request", "{{ n.body }}", {"data": 1, "body": 2}) == 2

    def test_are_for_the_first_key_only_and_for_these_handlers_only(self):
        with pytest.raises(Missing, match="has no key 'body'"):
            self.resolved("http_request", "{{ n.data.body }}", {"data": {"data": 1}})
        with pytest.raises(Missing, match="has no key 'body'"):
            self.resolved("echo", "{{ n.body }}", {"data": 1})

    def test_that_lead_nowhere_are_missing_with_the_keys_that_exist(self):
        with pytest.raises(Missing) as error:
            self.resolved("http_request", "{{ n.body }}", {"status_code": 500})
        assert str(error.value) == "{{ n.body }}: n has no key 'data'; it has: status_code"

    @staticmethod
    def resolved(handler: str, text: str, output: Any) -> Any:
        plan = plan_of(node("n", handler=handler), node("user", "n", config={"x": text}))
        scope = Outputs({"n": output}, aliases={"n": plan.nodes[0].aliases})
        return plan.nodes[1].config.resolve(scope)[0]["x"]

    def test_are_the_ones_of_the_contract(self):
        assert {handler: set(aliases) for handler, aliases in OUTPUT_ALIASES.items()} == {
            "call_external_service": {"response", "result", "body", "fetched_content"},
            "llm_service": {"text", "answer", "result", "generation", "data"},
            "signal": {"*"},
        }


POSSIBLE = 'only .key, [0], ["key"] and ?? are possible'
MALFORMED = {
    "{{ }}": "{{ }} is empty; name a node, as in {{ node.field }}",
    "{{": "'{{' has no closing }}",
    "x {{ user.name": "'{{ user.name' has no closing }}",
    "{{ user.name }": "'{{ user.name }' has no closing }}",
    "{{ user | upper }}": f"{{{{ user | upper }}}} can't be read at ' | upper'; {POSSIBLE}",
    "{{ user.name() }}": f"{{{{ user.name() }}}} can't be read at '()'; {POSSIBLE}",
    "{{ user..name }}": f"{{{{ user..name }}}} can't be read at '..name'; {POSSIBLE}",
    "{{ user. }}": f"{{{{ user. }}}} can't be read at '.'; {POSSIBLE}",
    "{{ user. .name }}": '{{ user. .name }} has an empty key; an empty one is written [""]',
    "{{ user[name] }}": f"{{{{ user[name] }}}} can't be read at '[name]'; {POSSIBLE}",
    "{{ user[-1] }}": f"{{{{ user[-1] }}}} can't be read at '[-1]'; {POSSIBLE}",
    "{{ user['name'] }}": f"{{{{ user['name'] }}}} can't be read at \"['name']\"; {POSSIBLE}",
    "{{ user.age + 1 }}": f"{{{{ user.age + 1 }}}} can't be read at '+ 1'; {POSSIBLE}",
    "{{ user + 1 }}": f"{{{{ user + 1 }}}} can't be read at ' + 1'; {POSSIBLE}",
    "{{ input == 1 }}": f"{{{{ input == 1 }}}} can't be read at ' == 1'; {POSSIBLE}",
    r'{{ user["\q"] }}': r'{{ user["\q"] }}: "\q" isn' + "'t a JSON string",
    '{{ nodes["a }}': '{{ nodes["a }} can\'t be read; write nodes["its id"]',
    "{{ secrets }}": "{{ secrets }} must be {{ secrets.NAME }} with a plain name",
    "{{ secrets.a.b }}": "{{ secrets.a.b }} must be {{ secrets.NAME }} with a plain name",
    "{{ secrets.a-b }}": "{{ secrets.a-b }} must be {{ secrets.NAME }} with a plain name",
    '{{ secrets.A ?? "x" }}': "{{ secrets.A }}: a secret can't have a fallback; remove the ??",
    "{{ execution.name }}": (
        "{{ execution.name }} isn't known; an execution has id, workflow, version"
    ),
    "{{ execution }}": "{{ execution }} isn't known; an execution has id, workflow, version",
    "{{ " + "x" * 3000 + " }}": "a reference of 3,000 characters is too long; "
    f"the limit is {REFERENCE_CHARACTERS_MAX:,}",
}
UNKNOWN = {
    "{{ usr.name }}": "{{ usr.name }} refers to 'usr', which isn't a node",
    "{{ __import__('os') }}": (
        "{{ __import__('os') }} refers to \"__import__('os')\", which isn't a node"
    ),
    "{{ 7 }}": "{{ 7 }} refers to '7', which isn't a node",
    "{{{ user }}}": "{{ { user }} refers to '{ user', which isn't a node",
    "{{ .user }}": "{{ .user }} must begin with a node's id",
    "{{ nodes.user }}": "{{ nodes.user }} refers to 'nodes', which isn't a node",
    '{{ nodes["usr"] }}': "{{ nodes[\"usr\"] }} refers to 'usr', which isn't a node",
}


@pytest.mark.parametrize(("text", "message"), MALFORMED.items())
def test_what_is_no_reference_is_malformed(text: str, message: str):
    assert malformed(text) == ("malformed_template", message)


@pytest.mark.parametrize(("text", "message"), UNKNOWN.items())
def test_what_names_nothing_is_unknown(text: str, message: str):
    assert malformed(text) == ("unknown_reference", message)


class TestConfigs:
    def test_strings_at_any_depth_are_resolved_and_keys_too(self):
        config = {
            "a": ["{{ user.age }}", {"b": [["x{{ user.age }}"]]}],
            "{{ user.name }}": 1,
            "c": 2.5,
            "d": None,
        }
        plan_node = self.node(config)
        resolved, secrets = plan_node.config.resolve(SCOPE)
        assert resolved == {"a": [42, {"b": [["x42"]]}], "Ann": 1, "c": 2.5, "d": None}
        assert list(resolved) == ["a", "Ann", "c", "d"]
        assert secrets == ()
        assert plan_node.needs == {"user"}
        assert plan_node.fixed_config is None

    def test_the_config_of_the_plan_stays_as_it_is(self):
        plan_node = self.node({"a": ["{{ user }}"]})
        resolved, _ = plan_node.config.resolve(SCOPE)
        resolved["a"].append(1)
        assert plan_node.config.value == {"a": ["{{ user }}"]}

    def test_a_config_without_references_is_ready_from_the_start(self):
        assert (
            self.node({"a": ["x } {", 2**63 - 1, "é"]}).fixed_config
            == '{"a":["x } {",9223372036854775807,"é"]}'.encode()
        )

    def test_a_missing_key_fails_the_whole_config(self):
        with pytest.raises(Missing, match="has no key 'nope'"):
            self.node({"a": "{{ user.name }}", "b": "{{ user.nope }}"}).config.resolve(SCOPE)

    def test_secrets_stay_names(self):
        config = {
            "headers": {"Authorization": "Bearer {{ secrets.TOKEN }}"},
            "key": "{{secrets.KEY}}",
        }
        resolved, secrets = self.node(config).config.resolve(SCOPE)
        assert resolved == {
            "headers": {"Authorization": "Bearer {{ secrets.TOKEN }}"},
            "key": "{{ secrets.KEY }}",
        }
        assert secrets == (
            SecretText(("headers", "Authorization"), ("Bearer ", "TOKEN", "")),
            SecretText(("key",), ("", "KEY", "")),
        )

    def test_data_beside_a_secret_is_never_taken_for_one(self):
        scope = Outputs({"user": {"name": "{{ secrets.OTHER }}"}})
        resolved, secrets = self.node({"x": "{{ user.name }}:{{ secrets.KEY }}"}).config.resolve(
            scope
        )
        assert secrets == (SecretText(("x",), ("{{ secrets.OTHER }}:", "KEY", "")),)
        assert resolved == {"x": "{{ secrets.OTHER }}:{{ secrets.KEY }}"}

    def test_a_node_called_secrets_does_not_hide_them(self):
        plan_node = plan_of(
            node("secrets"), node("b", "secrets", config={"x": "{{ secrets.KEY }}"})
        ).nodes[1]
        assert plan_node.needs == frozenset()

    @pytest.mark.parametrize("handler", ["input", "output", "decision"])
    def test_secrets_are_refused_where_they_would_be_shown(self, handler: str):
        config = {"value_a": "{{ secrets.K }}", "operator": "==", "value_b": 1}
        problem = problem_of(node("a", handler=handler, config=config))
        assert problem.code == "secret_in_data_node"

    @staticmethod
    def node(config: dict[str, Any]) -> PlanNode:
        return plan_of(node("user"), node("b", "user", config=config)).nodes[1]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON)
def test_every_json_value_comes_through_a_single_reference_as_it_was(value: Any):
    plan = plan_of(node("a"), node("b", "a", config={"whole": "{{ a }}", "part": "{{ a.output }}"}))
    scope = Outputs(
        {"a": value if not (isinstance(value, dict) and "output" in value) else [value]}
    )
    resolved, _ = plan.nodes[1].config.resolve(scope)
    assert repr(resolved["whole"]) == repr(resolved["part"]) == repr(scope.output("a"))


@settings(deadline=None)
@given(JSON, st.text())
def test_every_key_can_be_followed_and_every_value_found_inside_text(value: Any, key: str):
    text = f"<{{{{ a[{json.dumps(key)}][0] }}}}>"
    result = rendered(text, Outputs({"a": {key: [value]}}), ("a",))
    inner = value
    if not isinstance(value, str):
        inner = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert result == f"<{inner}>"


@settings(deadline=None)
@given(JSON)
def test_every_json_value_can_be_a_fallback(value: Any):
    literal = json.dumps(value)
    if "\\u0000" not in literal and "\0" not in str(value):
        assert repr(rendered(f"{{{{ user.nope ?? {literal} }}}}")) == repr(value)


@explored
@settings(deadline=None, max_examples=size(short=100, full=1000))
@given(st.text() | st.text(alphabet='{}[]"\\.?ab 0|\n', max_size=40).map(lambda text: "{{" + text))
def test_any_text_is_parsed_or_refused_with_a_template_error(text: str):
    node_ids = ("a", "b", "a.b", "a b", "}}")
    refusal, names = None, set[str]()
    try:
        pieces = parse_text(text, node_ids)
        names = {
            piece.name for piece in pieces if isinstance(piece, Reference) and piece.kind == "node"
        }
    except TemplateError as error:
        refusal = error
    assert names <= set(node_ids)
    assert refusal is None or refusal.code in {"malformed_template", "unknown_reference"}


@settings(deadline=None)
@given(
    st.lists(
        st.text(alphabet="a.[ ", min_size=1, max_size=4).filter(str.strip), min_size=1, max_size=6
    )
)
def test_the_id_that_is_found_is_the_longest_that_fits(names: list[str]):
    node_ids = {name.strip() for name in names}
    for name in node_ids:
        (piece,) = parse_text(f"{{{{ {name} }}}}", node_ids)
        assert isinstance(piece, Reference)
        assert (piece.name, piece.path) == (name, ())


def test_100_000_references_are_read_and_filled_in():
    size = 100_000
    pieces = parse_text("{{ user.items.0.id }} " * size, ("user",))
    assert len(pieces) == 2 * size
    assert render(pieces, SCOPE) == "7 " * size


def test_references_take_linear_work():
    assert_linear(
        lambda size: lambda: parse_text("{{ user.items[0].id ?? 1 }} " * size, ("user",)), 50
    )
    assert_linear(lambda size: lambda: rendered("{{ user.items[0].id ?? 1 }} " * size), 50)


@pytest.mark.parametrize(
    "text",
    [
        "{{ user.a" + '["x"]' * 50_000,
        "{{ user" + '["' * 50_000,
        "{{ user " + '[" \\" ' * 50_000,
        "{{" + "[" * 100_000,
    ],
)
def test_a_reference_without_an_end_is_refused_at_once(text: str):
    assert malformed(text)[0] == "malformed_template"


def test_configs_with_many_references_take_linear_work():
    def resolve(size: int) -> Any:
        config = {"list": [{"x": "{{ user.name }}"}] * size}
        return lambda: (
            plan_of(node("user"), node("b", "user", config=config)).nodes[1].config.resolve(SCOPE)
        )

    assert_linear(resolve, 50)


def test_a_resolved_config_can_be_sent():
    plan = plan_of(
        node("user"),
        node("b", "user", config={"x": "{{ user }}", "y": '{{ user.nope ?? {"a": 1} }}'}),
    )
    resolved, _ = plan.nodes[1].config.resolve(SCOPE)
    assert msgspec.json.decode(msgspec.json.encode(resolved)) == {"x": USER, "y": {"a": 1}}
