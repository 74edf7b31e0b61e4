"""References on a real engine (G7).

Data comes through as it was, whatever it looks like, and nothing is evaluated.
"""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from typing import Any

import pytest

import penstock
from tests.faults.table import Fault

TEXTS = (
    "{{",
    "}}",
    "{{ a.x }}",
    "{{ secrets.TOKEN }}",
    "{{ a.__class__ }}",
    "{% x %}",
    "${x}",
    "%(x)s",
    "{0.__class__}",
    "a\r\nb",
    "\x1b[2J",
    "é",
    "\U0001f600",
    "",
    " ",
    "null",
    "<script>",
    "\\u0041",
    '"',
    "'; DROP TABLE executions; --",
)
NUMBERS = (0, -1, 1, 2**53, 2**63 - 1, -(2**63), 0.5, -0.25, 1e300, 5e-324)


def _value(choose: random.Random, depth: int = 0) -> Any:
    kinds: list[Any] = [None, True, False, choose.choice(NUMBERS), choose.choice(TEXTS)]
    if depth < 4:
        kinds.append([_value(choose, depth + 1) for _ in range(choose.randint(0, 3))])
        kinds.append(
            {choose.choice(TEXTS): _value(choose, depth + 1) for _ in range(choose.randint(0, 3))}
        )
    return choose.choice(kinds)


def _echo(name: str, parent: str, config: Any) -> dict[str, Any]:
    return {
        "id": name,
        "handler": "echo",
        "dependencies": [parent] if parent else [],
        "config": config,
    }


async def _run(folder: Path, document: dict[str, Any], inputs: list[Any]) -> list[Any]:
    async with penstock.Engine(f"sqlite:///{folder}/store.db") as engine:
        handles = await engine.start_many(document, inputs)
        return [await handle.result() for handle in handles]


@pytest.mark.fault("templates", "every JSON type and “{{” inside data, through two nodes and back")
def test_data_comes_through_as_it_was_and_nothing_in_it_is_evaluated(
    fault: Fault, tmp_path: Path
) -> None:
    choose = fault.choices()
    values: list[Any] = [*TEXTS, *NUMBERS, None, True, False, [], {}]
    values += [_value(choose) for _ in range(fault.size(short=50, full=5000))]
    first = _echo("a", "", {"x": "{{ input.x }}"})
    second = _echo("b", "a", {"whole": "{{ a.x }}", "inside": ["{{ a.x }}", {"k": "{{ a.x }}"}]})
    document = {"name": "through", "nodes": [first, second]}
    results = asyncio.run(_run(tmp_path, document, [{"x": value} for value in values]))
    for value, result in zip(values, results, strict=True):
        # repr tells 1 from 1.0 and from True, which are equal
        assert repr(result.outputs["b"]) == repr({"whole": value, "inside": [value, {"k": value}]})
    fault.shows(values=len(values), type_equal=len(results), evaluated=0)


@pytest.mark.fault("templates", "100,000 references in one config, and in half of it")
def test_a_hundred_thousand_references_are_filled_in(fault: Fault, tmp_path: Path) -> None:
    seconds = []
    for number, count in enumerate((fault.size(1_000, 50_000), fault.size(2_000, 100_000))):
        nodes = [
            _echo("a", "", {"x": 7}),
            _echo("b", "a", {"text": "{{ a.x }} " * count, "list": ["{{ a.x }}"]}),
        ]
        folder = tmp_path / str(number)
        folder.mkdir()
        begun = time.process_time()
        (result,) = asyncio.run(_run(folder, {"name": "many", "nodes": nodes}, [None]))
        seconds.append(time.process_time() - begun)
        assert result.outputs["b"] == {"text": "7 " * count, "list": [7]}
    fault.shows(references=count, cpu_seconds=seconds[1], cpu_seconds_for_half=seconds[0])


@pytest.mark.fault("templates", "references to missing keys and to Python attributes")
def test_a_missing_key_fails_the_node_with_what_there_is(fault: Fault, tmp_path: Path) -> None:
    wrong = (
        "nope",
        "x.nope",
        "x[5]",
        "__class__",
        "x.__len__",
        "__init__.__globals__",
        "items",
        "keys",
        "x.append",
    )
    nodes = [_echo("a", "", {"x": [1, 2], "text": "t"})]
    nodes += [
        {**_echo(f"n{i}", "a", {"v": f"{{{{ a.{text} }}}}"}), "retry": {"max_attempts": 1}}
        for i, text in enumerate(wrong)
    ]
    document = {"name": "missing", "on_failure": "continue", "nodes": nodes}
    (result,) = asyncio.run(_run(tmp_path, document, [None]))
    for number, text in enumerate(wrong):
        node = result.nodes[f"n{number}"]
        assert node["state"] == "FAILED"
        assert text.split(".")[0].split("[")[0] in node["error"]["message"]
    fault.shows(references=len(wrong), failed_with_the_reason=len(wrong), evaluated=0)
