"""From text to plain values: what is read, and what is refused first of all."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.definition import Problem, parse
from penstock.definition.parse import Limits, check_values, form_of
from penstock.errors import InvalidWorkflow
from tests.definition.documents import assert_linear, problems_of, work

SMALL = Limits(max_values=10_000)


def refused(text: str | bytes, form: str = "json", limits: Limits | None = None) -> list[Problem]:
    with pytest.raises(InvalidWorkflow) as error:
        parse(text, form=form, limits=limits)
    return error.value.problems


def refusal(
    text: str | bytes, form: str = "json", limits: Limits | None = None
) -> tuple[str, str, str]:
    problems = refused(text, form, limits)
    assert len(problems) == 1, problems
    return problems[0].code, problems[0].path, problems[0].message


def test_json_is_read():
    text = '{"a": [1, -2.5, "é", true, null, {}]}'
    assert parse(text) == parse(text.encode()) == {"a": [1, -2.5, "é", True, None, {}]}


def test_comment_lines_are_left_out_and_slashes_inside_text_survive():
    text = """
    // the first line
    {
      // "a": 1,
      "url": "https://example.com//x", // not here
      \t// a last one, behind a tab
      "b": "// 2"
    }"""
    assert refusal(text, "jsonc") == (
        "malformed_json",
        "",
        (
            "not JSON: Expecting property name enclosed in double quotes (line 5, column 40); "
            "a // comment must have a line of its own, in a file"
        ),
    )
    assert parse(text.replace(" // not here", ""), form="jsonc") == {
        "url": "https://example.com//x",
        "b": "// 2",
    }


def test_comments_do_not_move_the_lines_that_errors_name():
    assert (
        refusal('// one\n// two\n{"a": }', "jsonc")[2]
        == "not JSON: Expecting value (line 3, column 7)"
    )


def test_comments_are_for_files_only():
    code, _, message = refusal('// a\n{"a": 1}')
    assert code == "malformed_json"
    assert message.endswith("a // comment must have a line of its own, in a file")


@pytest.mark.parametrize(
    ("file_name", "form"),
    [("a.yaml", "yaml"), ("A.YML", "yaml"), ("a.json", "jsonc"), ("a", "jsonc")],
)
def test_the_file_name_decides_the_form(file_name: str, form: str):
    assert form_of(file_name) == form


@pytest.mark.parametrize("form", ["json", "jsonc", "yaml"])
def test_a_byte_order_mark_is_ignored(form: str):
    assert parse("\ufeff" + '{"a": 1}', form=form) == {"a": 1}
    assert parse(b"\xef\xbb\xbf" + b'{"a": 1}', form=form) == {"a": 1}


@pytest.mark.parametrize("form", ["json", "jsonc", "yaml"])
@pytest.mark.parametrize("text", ["", " \n\t", b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(text: str | bytes, form: str):
    assert refusal(text, form) == (
        "empty_document",
        "",
        "the document is empty; a workflow is an object with nodes",
    )


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_is_not_utf_8_is_refused(form: str):
    assert refusal('{"a": "é"}'.encode("latin-1"), form) == (
        "not_utf8",
        "",
        "the document isn't UTF-8: byte 7 can't be read (line 1, column 8); save it as UTF-8",
    )
    assert refusal('{"a": 1}'.encode("utf-16"), form)[0] == "not_utf8"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_document_that_is_too_large_is_refused_before_it_is_read(form: str):
    message = "the document has 12 bytes; the limit is 11"
    assert refusal("[" * 12, form, Limits(max_bytes=11)) == ("too_large", "", message)
    assert refusal("é" * 6, form, Limits(max_bytes=11)) == ("too_large", "", message)
    assert refusal(b" " * (10 * 1024 * 1024 + 1), form)[0] == "too_large"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1', "not JSON: Expecting ',' delimiter (line 1, column 8)"),
        ('{"a": "x\ny"}', "not JSON: Invalid control character at (line 1, column 9)"),
        ('{"a": "\0"}', "not JSON: Invalid control character at (line 1, column 8)"),
        (
            "{'a': 1}",
            "not JSON: Expecting property name enclosed in double quotes (line 1, column 2)",
        ),
        ("{} {}", "not JSON: Extra data (line 1, column 4)"),
    ],
)
def test_malformed_json_is_refused_with_line_and_column(text: str, message: str):
    assert refusal(text) == ("malformed_json", "", message)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_what_is_not_finite_is_refused_with_its_place(number: str):
    message = "NaN and infinity aren't JSON; use null or a number"
    assert refusal(f'{{"a": [1, {{"b": {number}}}]}}') == ("not_finite", "a[1].b", message)


def test_a_key_that_stands_twice_is_refused_with_its_place():
    message = "the key 'id' stands twice in one object; remove one of them"
    text = '{"dag": {"nodes": [{"id": "a"}, {"id": "b", "handler": "noop", "id": "c"}]}}'
    assert refusal(text) == ("duplicate_key", "dag.nodes[1].id", message)
    assert refusal('{"id": 1, "id": 1}') == ("duplicate_key", "id", message)


def test_every_object_with_a_repeated_key_is_reported():
    problems = refused('[{"a": 1, "a": 2}, {"b": {"c": 1, "c": 1}}]')
    assert [(problem.code, problem.path) for problem in problems] == [
        ("duplicate_key", "[0].a"),
        ("duplicate_key", "[1].b.c"),
    ]


def test_the_same_key_in_two_objects_is_fine():
    assert parse('[{"a": 1}, {"a": {"a": 1}}]') == [{"a": 1}, {"a": {"a": 1}}]


@pytest.mark.parametrize("text", ['{"a": ["x\\u0000"]}', '{"a": [{"x\\u0000": 1}]}'])
def test_a_null_character_is_refused_with_its_place(text: str):
    assert refusal(text) == (
        "null_character",
        "a[0]",
        "the character U+0000 isn't allowed; remove it",
    )


@pytest.mark.parametrize(
    "text", ['{"a": ["\\ud800"]}', '{"a": ["x\udfff"]}', '{"a": [{"\\ud83d": 1}]}']
)
def test_a_lone_surrogate_is_refused_with_its_place(text: str):
    message = "half of a surrogate pair isn't text; write the whole character"
    assert refusal(text) == ("lone_surrogate", "a[0]", message)


def test_a_whole_surrogate_pair_is_a_character():
    assert parse('"\\ud83d\\ude00"') == "😀"


def test_what_is_said_about_half_a_character_can_be_sent():
    for problem in refused('{"\\ud800": {"\\ud800": 1, "b": NaN}, "c\\ud800": {"x": 1, "x": 2}}'):
        f"{problem.path} {problem.message}".encode()


@pytest.mark.parametrize(
    "number", [str(2**63), str(-(2**63) - 1), "9" * 100, "9" * 5000, "-" + "9" * 100_000]
)
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_an_integer_of_more_than_64_bits_is_refused_with_its_place(number: str, form: str):
    message = "an integer must fit in 64 bits; write larger ones as text, in quotes"
    assert refusal(f'{{"a": [0, {number}]}}', form) == ("number_too_large", "a[1]", message)


@pytest.mark.parametrize(
    ("rest", "code"), [(", }", "malformed_json"), (", " + "[" * 100_000, "too_deep")]
)
def test_what_comes_after_a_very_long_integer_is_looked_at_too(rest: str, code: str):
    assert refusal(f"[{'9' * 5000}{rest}")[0] == code


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_integers_of_64_bits_are_kept_exactly(form: str):
    assert parse(f"[{2**63 - 1}, {-(2**63)}]", form=form) == [2**63 - 1, -(2**63)]


def nested(depth: int, inner: str = "") -> str:
    return "[" * depth + inner + "]" * depth


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_sixty_four_levels_are_read_and_one_more_is_refused(form: str):
    parse(nested(64, "1"), form=form)
    parse(nested(65), form=form)
    assert refusal(nested(65, "1"), form) == (
        "too_deep",
        "[0]" * 64,
        "nested deeper than 64 levels",
    )


@pytest.mark.parametrize(
    "text", ["[" * 100_000, nested(100_000), '{"a":' * 100_000, "\n" + '[{"a[":' * 100_000]
)
def test_json_that_is_100_000_deep_is_refused_and_says_where_it_becomes_too_deep(text: str):
    code, _, message = refusal(text)
    assert code == "too_deep"
    position = 326 if text.startswith("{") else 66
    if text.startswith("\n"):
        assert message == "nested deeper than 64 levels (line 2, column 226)"
    else:
        assert message == f"nested deeper than 64 levels (line 1, column {position})"


def test_yaml_that_is_too_deep_is_refused_before_anything_is_built():
    assert refusal("\n" + nested(66), "yaml") == (
        "too_deep",
        "",
        "nested deeper than 64 levels (line 2)",
    )


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "- " * 100_000, '{"a": ' * 100_000, "? " * 100_000]
)
def test_yaml_that_is_100_000_deep_is_refused(text: str):
    assert refusal(text, "yaml") == ("too_deep", "", "nested deeper than 64 levels (line 1)")


def test_yaml_that_becomes_deep_through_aliases_is_refused():
    text = "- &a0 [x]\n" + "".join(f"- &a{i} [*a{i - 1}]\n" for i in range(1, 200))
    assert refusal(text, "yaml")[0] == "too_deep"


@pytest.mark.parametrize("width", [2, 10, 1000])
def test_billion_laughs_are_refused_before_they_unfold(width: int):
    text = f"a0: &a0 [{', '.join('x' * width)}]\n"
    text += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]\n" for i in range(1, 30))
    assert refusal(text, "yaml", SMALL) == (
        "too_large",
        "",
        "the document has more than 10,000 values",
    )


def test_merges_of_merges_do_not_grow():
    text = "a0: &a0 {k: 1}\n"
    text += "".join(
        f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}\n" for i in range(1, 60)
    )
    assert parse(text, form="yaml")["a59"] == {"k": 1}


BASE = "a: &a {" + ", ".join(f"k{i}: 1" for i in range(300)) + "}\n"
MERGES = {
    "in many mappings": BASE + "b:\n" + "  - {<<: *a}\n" * 40,
    "in one list": BASE + f"b: {{<<: [{', '.join(['*a'] * 40)}]}}\n",
    "again and again": BASE + "b:\n" + "  <<: *a\n" * 40,
    "of merges": BASE
    + "b0: &b0 {<<: *a}\n"
    + "".join(f"b{i}: &b{i} {{<<: *b{i - 1}}}\n" for i in range(1, 40)),
}


@pytest.mark.parametrize("text", MERGES.values(), ids=MERGES)
def test_merges_that_copy_too_much_are_refused_before_they_are_made(text: str):
    code, _, message = refusal(text, "yaml", SMALL)
    assert code == "too_large"
    assert message.startswith("the document has too many values once every << is merged (line ")


def test_keys_that_aliases_repeat_are_counted_before_they_are_looked_at():
    text = "a0: &a0 {x: 1}\n" + "".join(
        f"a{i}: &a{i} {{<<: *a{i - 1}, y{i}: *a{i - 1}}}\n" for i in range(1, 120)
    )
    assert work(lambda: refusal(text, "yaml", SMALL)) < 600_000


def test_yaml_makes_only_what_json_has():
    text = """
    date: 2024-01-31
    time: 2024-01-31T12:30:00Z
    clock: 12:30
    seconds: 12:30:45
    yes: yes
    on: off
    version: 1.2.3
    zip: 01234
    grouped: 1_000
    hexadecimal: 0x1F
    octal: 0o17
    equals: =
    flags: [true, True, FALSE]
    empty:
    tilde: ~
    numbers: [1, -2, +3, 0, 1.5, .5, 1e3, -2.5E-1]
    quoted: ["1", 'true', "null"]
    """
    assert parse(text, form="yaml") == {
        "date": "2024-01-31",
        "time": "2024-01-31T12:30:00Z",
        "clock": "12:30",
        "seconds": "12:30:45",
        "yes": "yes",
        "on": "off",
        "version": "1.2.3",
        "zip": "01234",
        "grouped": "1_000",
        "hexadecimal": "0x1F",
        "octal": "0o17",
        "equals": "=",
        "empty": None,
        "tilde": None,
        "numbers": [1, -2, 3, 0, 1.5, 0.5, 1000.0, -0.25],
        "quoted": ["1", "true", "null"],
        "flags": [True, True, False],
    }


def test_anchors_are_filled_in():
    text = """
    base: &base {retry: {max_attempts: 2}, timeout: 5}
    same: *base
    list: [*base, *base]
    """
    base = {"retry": {"max_attempts": 2}, "timeout": 5}
    assert parse(text, form="yaml") == {"base": base, "same": base, "list": [base, base]}


def test_a_merge_gives_way_to_what_the_mapping_says_itself():
    text = """
    slow: &slow {timeout: 100, queue: q}
    fast: &fast {timeout: 1}
    before: {timeout: 7, <<: *slow}
    after: {<<: *slow, timeout: 7}
    both: {<<: [*fast, *slow], id: a}
    two: {<<: *fast, "id": a, <<: *slow}
    """
    value = parse(text, form="yaml")
    assert value["before"] == value["after"] == {"timeout": 7, "queue": "q"}
    assert value["both"] == value["two"] == {"timeout": 1, "queue": "q", "id": "a"}


MALFORMED_YAML = {
    "a tab as indentation": (
        "a:\n\t- b",
        (
            "while scanning for the next token,"
            " found character that cannot start any token (line 2, column 1)"
            "; indent with spaces, not with tabs"
        ),
    ),
    "two documents": (
        "a: 1\n---\nb: 2",
        "expected a single document in the stream, but found another document (line 2, column 1)",
    ),
    "a template without quotes": (
        "a: 1\nurl: {{ user.url }}",
        'text that begins with {{ must be in quotes: "{{ node.field }}" (line 2)',
    ),
    "a template without quotes before more text": (
        "url: {{ user.url }}/x",
        (
            "while parsing a block mapping, did not find expected key (line 1, column 20);"
            " text with {{ must be in quotes"
        ),
    ),
    "an undefined alias": ("a: *b", "found undefined alias (line 1, column 4)"),
    "an alias inside itself": (
        "a: &a [*a]",
        "found unconstructable recursive node (line 1, column 4)",
    ),
    "a list that isn't closed": (
        "- [a\n- b",
        "while parsing a flow sequence, did not find expected ',' or ']' (line 3, column 1)",
    ),
    "a control character": ("a: b\nc: \x07", "the character U+0007 isn't allowed (line 2)"),
    "a null character": ("a: \0", "the character U+0000 isn't allowed (line 1)"),
    "a merge of text": ("a: 1\n<<: b", "<< needs a mapping or a list of mappings (line 2)"),
}


@pytest.mark.parametrize(("text", "message"), MALFORMED_YAML.values(), ids=MALFORMED_YAML.keys())
def test_malformed_yaml_is_refused_with_its_line(text: str, message: str):
    assert refusal(text, "yaml") == ("malformed_yaml", "", f"not YAML: {message}")


@pytest.mark.parametrize(
    "tag",
    [
        "!!int",
        "!!float",
        "!!bool",
        "!!null",
        "!!binary",
        "!!timestamp",
        "!!set",
        "!!python/object:os.system",
        "!x",
    ],
)
@pytest.mark.parametrize("value", ["x", "{a: 1}", "[1]", "''"])
def test_tags_are_refused(tag: str, value: str):
    message = f"not YAML as used here: remove the tag {tag} (line 2)"
    assert refusal(f"a: 1\nb: {tag} {value}", "yaml") == ("malformed_yaml", "", message)


def test_the_tag_for_text_is_allowed():
    assert parse("a: !!str 123", form="yaml") == {"a": "123"}


def test_a_repeated_key_in_yaml_is_refused_with_its_place():
    message = "the key 'id' stands twice in one object; remove one of them"
    text = "nodes:\n- id: a\n- id: b\n  handler: noop\n  id: c\n"
    assert refusal(text, "yaml") == ("duplicate_key", "nodes[1].id", message)


@pytest.mark.parametrize(
    ("key", "excerpt"),
    [("1", "1"), ("1.5", "1.5"), ("true", "True"), ("~", "None"), ("[a]", "['a']")],
)
def test_a_yaml_key_that_is_not_text_is_refused(key: str, excerpt: str):
    message = f"the key {excerpt} must be text; put it in quotes (line 2)"
    assert refusal(f"a: 1\n? {key}\n: 2", "yaml") == ("key_not_text", "", message)


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        ("a: [.nan]", "not_finite", "a[0]"),
        ("a: {b: -.inf}", "not_finite", "a.b"),
        ("a: [1e999]", "not_finite", "a[0]"),
        ('a: ["x\\0"]', "null_character", "a[0]"),
    ],
)
def test_what_yaml_can_say_and_json_cannot_is_refused_with_its_place(
    text: str, code: str, path: str
):
    assert refusal(text, "yaml")[:2] == (code, path)


def test_half_a_character_in_yaml_is_refused():
    message = "half of a surrogate pair isn't text; write the whole character (line 2)"
    assert refusal("a: 1\nb: x\ud800", "yaml") == ("lone_surrogate", "", message)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[1]", "a list"),
        ("[]", "a list"),
        ('"text"', "text"),
        ("7", "a number"),
        ("true", "true or false"),
        ("null", "null"),
    ],
)
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_is_not_an_object_is_json_but_no_workflow(text: str, kind: str, form: str):
    problems = problems_of(parse(text, form=form))
    assert problems == [
        Problem("not_an_object", "", f"a workflow is an object with nodes, not {kind}")
    ]


def endless() -> list[Any]:
    value: list[Any] = []
    value += [value, value]
    return value


ALLOWED = "only objects, lists, text, numbers, true, false and null are allowed"
NOT_PLAIN: dict[str, tuple[Any, str, str, str]] = {
    "a set": ({"a": {1}}, "not_json", "a", f"{ALLOWED}, not a Python set"),
    "a tuple": ([(1,)], "not_json", "[0]", f"{ALLOWED}, not a Python tuple"),
    "a number key": (
        {"a": {1: 2}},
        "key_not_text",
        "a",
        "keys must be text, not a Python int; put the key in quotes",
    ),
    "no number": (
        [math.nan],
        "not_finite",
        "[0]",
        "NaN and infinity aren't JSON; use null or a number",
    ),
}


@pytest.mark.parametrize(
    ("value", "code", "path", "message"), NOT_PLAIN.values(), ids=NOT_PLAIN.keys()
)
def test_python_values_that_json_does_not_have_are_refused(
    value: Any, code: str, path: str, message: str
):
    assert problems_of(value) == [Problem(code, path, message)]


def test_a_value_that_holds_itself_is_refused():
    assert problems_of(endless(), limits=SMALL)[0].code == "too_large"
    value: dict[str, Any] = {}
    value["again"] = value
    assert problems_of(value)[0].code == "too_deep"


def test_many_mistakes_are_reported_at_once_but_not_without_end():
    value = {"a": [math.nan, "\0", 2**64, "fine", {"b": "\ud800"}]}
    problems = [(problem.code, problem.path) for problem in problems_of(value)]
    assert problems == [
        ("not_finite", "a[0]"),
        ("null_character", "a[1]"),
        ("number_too_large", "a[2]"),
        ("lone_surrogate", "a[4].b"),
    ]
    assert len(problems_of([math.nan] * 1000)) == 10


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON)
def test_every_json_value_is_read_as_it_was_written(value: Any):
    text = json.dumps(value, ensure_ascii=False)
    for form in ("json", "jsonc"):
        assert repr(parse(text, form=form)) == repr(value)


@settings(deadline=None)
@given(JSON)
def test_yaml_reads_json_too(value: Any):
    assert repr(parse(json.dumps(value, ensure_ascii=False), form="yaml")) == repr(value)


@settings(deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60), st.sampled_from(["json", "jsonc", "yaml"]))
def test_any_text_is_either_read_or_refused(text: str | bytes, form: str):
    try:
        check_values(parse(text, form=form))
    except InvalidWorkflow as error:
        str(error).encode()


@settings(deadline=None)
@given(st.text(alphabet="ab:-?[]{}&*!<|>\"'#%@` \n\t1.", max_size=40))
def test_any_text_that_looks_like_yaml_is_either_read_or_refused(text: str):
    problems: list[Problem] = []
    try:
        check_values(parse(text, form="yaml"))
    except InvalidWorkflow as error:
        problems = error.problems
    assert all(len(str(problem).splitlines()) == 1 for problem in problems)


def test_the_look_at_plain_values_takes_linear_work():
    assert_linear(
        lambda size: lambda: check_values([{"a": [i, "x", None]} for i in range(size)]), 200
    )
