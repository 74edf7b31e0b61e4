"""Lives of a program that uses Penstock on a SQLite file, and what holds after them.

The program is `tests.acceptance.shop`.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Self

from tests.acceptance import shop, works
from tests.acceptance.judge import Verdict, judge
from tests.waiting import until_now

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60.0


class Life:
    """One run of the program."""

    def __init__(
        self, folder: Path, mode: str, *arguments: str, program: str = shop.__name__
    ) -> None:
        self.folder = folder
        self._errors = (folder / "stderr").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", program, mode, str(folder), *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._errors.close()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def end(self, seconds: float = PATIENCE_SECONDS) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, output.strip()

    def wait_for_calls(self, count: int) -> bool:
        """Wait until the handlers have been called this often in all.

        Returns False if the program ended before.
        """
        until_now(
            lambda: self.process.poll() is not None or count_calls(self.folder) >= count,
            f"{count} calls",
            seconds=PATIENCE_SECONDS,
        )
        return self.process.poll() is None


def calls(folder: Path) -> list[str]:
    others = [
        f"{call.execution_id} {call.node} {call.attempt}"
        for call in works.calls(folder / shop.WORKS)
        if call.event == "begun"
    ]
    return lines(folder / "handlers") + others


def count_calls(folder: Path) -> int:
    """As many as `calls` has lines, without decoding them."""
    files = [folder / "handlers", *(folder / shop.WORKS).glob("*.calls")]
    return sum(file.read_bytes().count(b"\n") for file in files if file.exists())


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def accepted(folder: Path) -> list[str]:
    return lines(folder / "accepted")


def assert_guarantees(folder: Path) -> Verdict:
    """What holds after every fault."""
    verdict = judge(folder / "store.db", shop.EVERY)
    assert verdict.problems == []
    assert [name for name in accepted(folder) if name not in verdict.executions] == []
    repeated = {call: count for call, count in Counter(calls(folder)).items() if count > 1}
    assert repeated == {}, "an attempt ran twice"
    return verdict
