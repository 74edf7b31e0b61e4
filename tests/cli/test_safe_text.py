"""What passes to a terminal, and what doesn't."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.safe_text import clean, duration, json_text, one_line

ALLOWED_CONTROLS = {"\t", "\n"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain é 漢 🎉", "plain é 漢 🎉"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b\x1b[[31mA", "31mA"),
        ("\x1b]unfinished", "]unfinished"),
        ("a\rb\r\nc", "a\nb\nc"),
        ("a\x08\x7f\x00b", "ab"),
        ("\u202eabc\u2066", "abc"),
        ("\ud800half", "half"),
        ("[red]kept[/red]", "[red]kept[/red]"),
    ],
)
def test_clean(text: str, left: str):
    assert clean(text) == left


@given(st.text(st.characters(codec=None), max_size=60))
def test_nothing_that_a_terminal_acts_on_is_left(text: str):
    for safe in (clean(text), json_text({text: text})):
        assert not {
            c for c in safe if (ord(c) < 32 or 127 <= ord(c) < 160) and c not in ALLOWED_CONTROLS
        }
        safe.encode()


@given(st.text(max_size=60))
def test_json_text_is_the_same_value(text: str):
    assert json.loads(json_text({text: [text]})) == {text: [text]}


def test_one_line_is_one_line_and_short():
    assert one_line("a\n  b\t c") == "a b c"
    assert one_line("x" * 300, 10) == "xxxxxxxxx…"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "<1 ms"), (0.0421, "42 ms"), (1.26, "1.3 s"), (61, "1 min 01 s"), (7384, "2 h 03 min")],
)
def test_duration(seconds: float, text: str):
    assert duration(seconds) == text
