"""On a real (pseudo-)terminal: the live table, and data that tries to take the terminal over."""

import json
from textwrap import dedent

from tests.cli.commands import Terminal, foreign_escapes, nodes, penstock, visible, write

EVIL = "\x1b[2J\x1b]0;owned\x07\x1b[41mred\x1b[0m\x9b31m\u202e[bold red]marked[/] \x08\x08end"
HANDLERS = dedent(f"""
    import os
    import subprocess
    import sys

    import penstock

    EVIL = {EVIL!r}


    @penstock.handler("say")
    def say(config, ctx):
        print(EVIL)
        ctx.log.info(EVIL)
        subprocess.run([sys.executable, "-c", f"print({{EVIL!r}})"], check=True)
        os.write(2, (EVIL + "\\n").encode())
        return {{EVIL: EVIL}}


    @penstock.handler("raise")
    def fails(config):
        raise penstock.Terminal(EVIL, category=EVIL, detail={{EVIL: EVIL}})
""")
HOSTILE = nodes(
    {"id": "[red]said[/red]", "handler": "say"},
    {"id": "[/]", "handler": "raise", "optional": True},
    {"id": "skipped", "handler": "noop", "condition": "'\x1b[2J[red]' == ''"},
    {"id": "output", "handler": "output", "dependencies": ["[red]said[/red]", "[/]"]},
) | {"name": "[blink]name", "labels": {"a": EVIL}}


def test_nothing_in_ids_outputs_errors_and_logs_reaches_the_terminal_as_a_command(tmp_path):
    write(tmp_path, {"flow.json": json.dumps(HOSTILE), "handlers.py": HANDLERS})
    terminal = Terminal(
        "run",
        "flow.json",
        "--handlers",
        "handlers.py",
        "--logs",
        cwd=tmp_path,
        columns=120,
        rows=50,
    )
    assert terminal.close() == 0
    assert not foreign_escapes(terminal.screen)
    assert not set("\x07\x08\x9b\x9d\u202e") & set(terminal.screen)
    assert "\x1b[41m" not in terminal.screen
    screen = visible(terminal.screen)
    for text in ("[red]said[/red]", "✗ [/] failed", "[blink]name", "red[bold red]marked[/] end"):
        assert text in screen
    assert "\\u001b[2J\\u001b]0;owned\\u0007" in screen  # JSON shows it for what it is


def test_the_same_holds_for_lines_and_for_json(tmp_path):
    quiet = "".join(
        line
        for line in HANDLERS.splitlines(keepends=True)
        if "subprocess.run" not in line and "os.write" not in line
    )
    write(tmp_path, {"flow.json": json.dumps(HOSTILE), "handlers.py": quiet})
    lines = penstock("run", "flow.json", "--handlers", "handlers.py", "--logs", cwd=tmp_path)
    as_json = penstock("run", "flow.json", "--handlers", "handlers.py", "--json", cwd=tmp_path)
    for done in (lines, as_json):
        assert done.returncode == 0
        assert not set("\x07\x08\x1b\x9b\x9d\u202e") & set(done.stdout + done.stderr)
    assert json.loads(as_json.stdout)["output"]["[red]said[/red]"] == {EVIL: EVIL}


def test_messages_about_bad_documents_are_cleaned_too(tmp_path):
    write(
        tmp_path,
        {"flow.json": json.dumps(nodes({"id": "a", "handler": EVIL, "dependencies": [EVIL]}))},
    )
    for command in ("run", "validate"):
        done = penstock(command, "flow.json", "--strict", cwd=tmp_path)
        assert done.returncode == 2
        assert not set("\x07\x08\x1b\x9b\x9d\u202e") & set(done.stderr)


def test_the_live_table_ends_with_every_node_and_the_output(tmp_path):
    flow = nodes(
        {"id": "one", "handler": "echo", "config": {"x": 1}},
        {"id": "two", "handler": "noop", "dependencies": ["one"], "condition": "one.x == 2"},
        {"id": "three", "handler": "echo", "dependencies": ["one"], "config": {"x": "{{ one.x }}"}},
    )
    write(tmp_path, {"flow.json": json.dumps(flow)})
    terminal = Terminal("run", "flow.json", cwd=tmp_path)
    assert terminal.close() == 0
    screen = visible(terminal.screen)
    assert "✓ completed  one" in screen
    assert "– skipped    two" in screen
    assert "condition is false: one.x == 2" in screen
    assert '"x": 1' in screen
    assert "COMPLETED in" in screen.splitlines()[-1]


def test_colours_can_be_turned_off(tmp_path):
    write(tmp_path, {"flow.json": json.dumps(nodes({"id": "one", "handler": "noop"}))})
    terminal = Terminal("run", "flow.json", "--no-color", cwd=tmp_path)
    assert terminal.close() == 0
    colours = {f"\x1b[{code}m" for code in (31, 32, 33, 34, 35, 36)}
    assert not [colour for colour in colours if colour in terminal.screen]
    terminal = Terminal("run", "flow.json", "--plain", cwd=tmp_path)
    assert terminal.close() == 0
    assert "\x1b" not in terminal.screen
    assert "one        COMPLETED" in terminal.screen
