"""The rows of FAULTS, what each test of a row has shown, and all of it as one table."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

FAMILIES = (
    "processes",
    "failpoints",
    "zombies",
    "replies",
    "messages",
    "fan-in",
    "Redis",
    "PostgreSQL",
    "SQLite",
    "time",
    "poison",
    "reaping",
    "cancel, pause",
    "size",
    "documents",
    "templates",
    "opening",
    "closing",
    "deployment",
    "blocked",
    "topology",
    "files",
    "soak",
    "security",
)
BEGIN, END = "<!-- the table -->", "<!-- the end of the table -->"
"""What `make faults` writes is between these lines of the page."""
HEAD = "| family | done | held | seconds | seed | figures |\n|---|---|---|--:|--:|---|"

Figure = int | float | str
REDELIVERY_SECONDS = 20.0
"""G5: a dead worker's task is running again by then."""
TAKEOVER_SECONDS = 6.0
"""G5: a dead orchestrator's work goes on by then."""
SWEEP_SECONDS = 5.0
"""What nobody was woken for is found by then."""


@dataclass
class Fault:
    """What a test is given: how much to do, a seed to choose by, and where to say what it saw."""

    family: str
    done: str
    seed: int
    is_full: bool
    figures: dict[str, Figure] = field(default_factory=dict)
    others: list[tuple[str, str, dict[str, Figure]]] = field(default_factory=list)

    def size(self, short: int, full: int) -> int:
        """How many: a part in `make test`, the whole in `make faults`."""
        return full if self.is_full else short

    def choices(self) -> random.Random:
        return random.Random(self.seed)

    def shows(self, **figures: Figure) -> None:
        """Counts of faults and of what came of them: `kills=20, fenced=3`."""
        self.figures.update(figures)

    def promises(self, limit_seconds: float, **seconds: float) -> None:
        """Shows figures that have a promised limit.

        At full size a figure over its limit fails the row, in `make test` none does.
        """
        self.figures.update(seconds)
        over = {name: value for name, value in seconds.items() if value > limit_seconds}
        assert not (self.is_full and over), f"promised are {limit_seconds:g} s: {over}"

    def shows_also(self, family: str, done: str, **figures: Figure) -> None:
        """A row more: of another fault that the same plant has been through."""
        assert family in FAMILIES, family
        self.others.append((family, done, figures))


@dataclass(frozen=True)
class Row:
    family: str
    done: str
    is_green: bool
    seconds: float
    seed: int
    figures: Mapping[str, Figure]

    def __str__(self) -> str:
        figures = ", ".join(
            f"{name.replace('_', ' ')} {_figure(value)}" for name, value in self.figures.items()
        )
        verdict = "yes" if self.is_green else "**NO**"
        return (
            f"| {self.family} | {self.done} | {verdict} | {self.seconds:.1f} | {self.seed} | "
            f"{figures} |"
        )


def _figure(value: Figure) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else value


def table(rows: Iterable[Row]) -> str:
    ordered = sorted(rows, key=lambda row: (FAMILIES.index(row.family), row.done))
    return "\n".join([HEAD, *map(str, ordered)])


def missing(rows: Iterable[Row], wanted: Iterable[str] = FAMILIES) -> list[str]:
    """Families without a test that was run: as bad as a test that failed."""
    families = {row.family for row in rows}
    return [family for family in wanted if family not in families]


def page(before: str, rows: Sequence[Row]) -> str:
    """With these rows between its marks.

    Rows of families that weren't run stay: an hour of soak is run by itself.
    """
    head, _, rest = before.partition(BEGIN)
    old, _, tail = rest.partition(END)
    run = {row.family for row in rows}
    unchanged = [line for line in old.splitlines() if _family(line) in set(FAMILIES) - run]
    new = table(rows).splitlines()[HEAD.count("\n") + 1 :]
    lines = sorted(unchanged + new, key=lambda line: FAMILIES.index(_family(line)))
    return f"{head}{BEGIN}\n{HEAD}\n" + "".join(f"{line}\n" for line in lines) + END + tail


def _family(line: str) -> str:
    return line.removeprefix("|").partition("|")[0].strip()
