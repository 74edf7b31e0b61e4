"""What examples do beyond what their pages show (tests/docs/test_stories.py)."""

import json
import sys

from tests.cli.commands import ROOT, Terminal, call, penstock, visible


def run(*command: str):
    return call([sys.executable, *command])


def test_quickstart_for_somebody_else():
    done = run("examples/quickstart/run.py", "--customer", "2", "--plain", "--logs")
    assert done.returncode == 0
    assert "RETRYING   again in " in done.stdout
    assert "letter      SKIPPED    condition is false: vip.result" in done.stdout
    assert "  adding up 3 prices\n" in done.stdout
    assert '"receipt": "Receipt for Grace: 64.40 €, plus shipping."' in done.stdout


def test_quickstart_for_a_vip_on_a_terminal():
    terminal = Terminal(cwd=ROOT, command=[sys.executable, "examples/quickstart/run.py"])
    assert terminal.close() == 0
    screen = visible(terminal.screen)
    for text in (
        "↻ retrying   stock",
        "– skipped    receipt",
        "✓ completed  letter",
        "Dear Ada",
        "COMPLETED in",
    ):
        assert text in screen


def test_llm_with_stand_ins():
    done = penstock("run", "examples/llm/summary.yaml", "--mock", "--json")
    output = json.loads(done.stdout)["output"]
    assert done.returncode == 0
    assert output["topic"] == "engineering"
    assert output["glossary"].startswith("Mock LLM response to: Explain")


def test_llm_tools_with_stand_ins():
    done = penstock("run", "examples/llm/tools.yaml", "--mock", "--json")
    output = json.loads(done.stdout)["output"]
    assert done.returncode == 0
    assert output["tool_calls"] == [
        {"id": "call_mock_1", "name": "get_weather", "arguments": {"city": "Oslo"}}
    ]
    assert "Mock LLM response to: " in output["answer"]


def test_llm_picture_with_stand_ins():
    done = penstock("run", "examples/llm/picture.yaml", "--mock", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["output"] == {"animal": "cat", "count": 0}


def test_engine_charges_once_however_often_it_is_asked(tmp_path):
    for lines in (12 * 2 + 3 * 3, 12 * 2 + 3 * 3):
        done = run("examples/engine/service.py", str(tmp_path / "orders.db"))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") <= lines
        assert done.stdout.endswith("order-3: COMPLETED {'charged': 300, 'packed': 'order-3'}\n")
