"""Style as a test: what a machine can judge of our text, so that reviews needn't.

Each check takes one file and yields its findings as `path:line: what is wrong, and what to do
instead`. It has one test over the tree and one case in `CAUGHT`, which proves that the check can
fail.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]

PURE_PACKAGES = ("src/penstock/definition", "src/penstock/engine")
IMPURE_MODULES = frozenset(
    {"asyncio", "os", "random", "secrets", "socket", "sqlite3", "threading", "time"}
)
CLOCK_CALLS = frozenset(
    {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today"}
)
PRINTING = ("src/penstock/cli", "src/penstock/cli.py")
VAGUE_NAMES = frozenset(
    {"util", "utils", "common", "helper", "helpers", "manager", "managers", "core"}
)
SKIPS = frozenset({"skip", "skipif", "xfail", "importorskip"})
SWALLOWED = frozenset({"Exception", "BaseException"})

DECIDING_PACKAGES = ("src/penstock/engine", "src/penstock/orchestrator")
STATE_WRITER = "src/penstock/engine/transitions.py"
RETIRED_WORDS = {
    "wish": "control request",
    "wishes": "control requests",
    "wished": "requested",
    "steer": "request_control",
    "steering": "control",
    "steered": "controlled",
    "ferry": "tiering",
    "carrier": "cold writer",
    "tenure": "lease term",
    "attending": "members",
    "depart": "deregister",
    "wreck": "broken execution",
    "wrecks": "broken executions",
    "wrecked": "broken",
    "culprit": "rejected",
    "blame": "set the error of",
    "books": "api_keys and audit_log",
    "lane": "partition or index range",
    "lanes": "partitions or index ranges",
    "news": "commit feed",
}
RETIRED_FORMS = {
    r"_?(MOST|LONGEST|LARGEST|MAX)_[A-Z0-9_]+": "X_MAX",
    r"[A-Z0-9_]+_MOST": "X_MAX",
}

TIME_CONSTANT = re.compile(r"(?P<module>penstock\..+)\.(?P<name>[A-Z0-9_]*SECONDS(_MAX|_MIN)?)")
PATCHING_CALLS = frozenset({"setattr", "object", "patch"})

MARKER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
BLANKET_IGNORE = re.compile(r"type:\s*ignore(?!\[)")
FENCE = re.compile(r"^\s*(```|~~~)")
INLINE_CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?[^)]*\)|^\s*\[[^\]]+\]:\s+<?([^\s>]+)>?")
HAS_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass(frozen=True)
class SourceFile:
    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        if self.path.suffix != ".py":
            return list(enumerate(self.text.splitlines(), start=1))
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [
            (token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT
        ]

    @cached_property
    def names(self) -> dict[str, str]:
        """What each imported name stands for.

        `from time import sleep as nap` gives `nap` -> `time.sleep`.
        """
        found = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found.update({alias.asname: alias.name for alias in node.names if alias.asname})
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.update(
                    {
                        alias.asname or alias.name: f"{node.module}.{alias.name}"
                        for alias in node.names
                    }
                )
        return found

    def dotted(self, node: ast.AST) -> str:
        """The full name that an expression refers to, or an empty string."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute) and (owner := self.dotted(node.value)):
            return f"{owner}.{node.attr}"
        return ""

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        for node in self.nodes:
            if isinstance(node, ast.Call):
                yield node, self.dotted(node.func)

    def imports(self) -> Iterator[tuple[int, str]]:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.lineno, node.module.partition(".")[0]

    def is_under(self, *folders: str) -> bool:
        return any(self.path.is_relative_to(folder) for folder in folders)

    def at(self, line: int, finding: str) -> str:
        return f"{self.path}:{line}: {finding}"


Check = Callable[[SourceFile], Iterator[str]]


def code_from_data(file: SourceFile) -> Iterator[str]:
    for call, name in file.calls():
        if name.removeprefix("builtins.") in {"eval", "exec"}:
            yield file.at(call.lineno, f"{name}() can run what a document says (G7)")
    for line, module in file.imports():
        if module == "pickle":
            yield file.at(line, "pickle runs code when it loads (G7); use msgspec")


def prints(file: SourceFile) -> Iterator[str]:
    if file.is_under(*PRINTING):
        return
    for call, name in file.calls():
        if name == "print":
            yield file.at(call.lineno, "print() outside cli; use telemetry")


def impurity(file: SourceFile) -> Iterator[str]:
    if not file.is_under(*PURE_PACKAGES):
        return
    for line, module in file.imports():
        if module in IMPURE_MODULES:
            yield file.at(
                line, f"imports {module}; definition and engine are pure, pass the value in"
            )
    for call, name in file.calls():
        if name in CLOCK_CALLS:
            yield file.at(call.lineno, f"{name}() reads a clock; time is passed in")


def swallowed_exceptions(file: SourceFile) -> Iterator[str]:
    for node in file.nodes:
        if (
            isinstance(node, ast.ExceptHandler)
            and catches_everything(file, node.type)
            and does_nothing(node.body)
        ):
            yield file.at(node.lineno, "swallows every exception; name the ones that you expect")
    for call, name in file.calls():
        if name == "contextlib.suppress" and any(
            file.dotted(argument) in SWALLOWED for argument in call.args
        ):
            yield file.at(call.lineno, "suppresses every exception; name the ones that you expect")


def catches_everything(file: SourceFile, caught: ast.expr | None) -> bool:
    options = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(option is None or file.dotted(option) in SWALLOWED for option in options)


def does_nothing(body: list[ast.stmt]) -> bool:
    return all(
        isinstance(node, ast.Pass)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in body
    )


def fixed_sleeps(file: SourceFile) -> Iterator[str]:
    for call, name in file.calls():
        if name == "time.sleep":
            yield file.at(call.lineno, "time.sleep(); wait for a signal or retry the assertion")
        elif (
            name == "asyncio.sleep"
            and isinstance(delay := first_argument(call), ast.Constant)
            and delay.value
        ):
            yield file.at(
                call.lineno,
                "asyncio.sleep() for a fixed time; wait for a signal or retry the assertion",
            )


def first_argument(call: ast.Call) -> ast.expr | None:
    return next(iter([*call.args, *(keyword.value for keyword in call.keywords)]), None)


def skipped_tests(file: SourceFile) -> Iterator[str]:
    for node in file.nodes:
        if isinstance(node, ast.Attribute | ast.Name):
            package, _, name = file.dotted(node).rpartition(".")
            if name in SKIPS and package.partition(".")[0] in {"pytest", "unittest"}:
                yield file.at(node.lineno, f"{name}: a test passes, fails or is deleted")


def leftover_markers(file: SourceFile) -> Iterator[str]:
    for line, comment in file.comments:
        if marker := MARKER.search(comment):
            yield file.at(line, f"{marker.group()}: do it, or write an issue")


def blanket_type_ignores(file: SourceFile) -> Iterator[str]:
    for line, comment in file.comments:
        if BLANKET_IGNORE.search(comment):
            yield file.at(line, "ignores every type error; name the code: type: ignore[code]")


def vague_names(file: SourceFile) -> Iterator[str]:
    for part in PurePosixPath(file.path.with_suffix("")).parts:
        if part in VAGUE_NAMES:
            yield file.at(
                1, f"{part!r} says nothing; a module is named after the noun that it owns"
            )


def broken_links(file: SourceFile) -> Iterator[str]:
    fenced = False
    for number, line in enumerate(file.text.splitlines(), start=1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            for match in LINK.finditer(INLINE_CODE.sub("", line)):
                target = (match[1] or match[2]).partition("#")[0]
                if (
                    target
                    and not HAS_SCHEME.match(target)
                    and not (ROOT / file.path.parent / target).exists()
                ):
                    yield file.at(number, f"links to {target}, which doesn't exist")


def foreign_state_changes(file: SourceFile) -> Iterator[str]:
    """Assignments to a node's or an execution's state outside the one module that may do that."""
    if not file.is_under(*DECIDING_PACKAGES) or str(file.path) == STATE_WRITER:
        return
    for node in file.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "state" and is_assigned(node):
            yield file.at(node.lineno, f"assigns a state; only {STATE_WRITER} does that")


def is_assigned(node: ast.Attribute | ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def retired_words(file: SourceFile) -> Iterator[str]:
    """Names in code that have a retired word in them. A test's name is a sentence, and may."""
    for name, line in names_in_code(file):
        if name.startswith("test_"):
            continue
        for word in words_of(name):
            if word in RETIRED_WORDS:
                yield file.at(line, f"{name}: we say {RETIRED_WORDS[word]}, not {word}")
        for pattern, replacement in RETIRED_FORMS.items():
            if re.fullmatch(pattern, name):
                yield file.at(line, f"{name}: limits are called {replacement}")


def names_in_code(file: SourceFile) -> Iterator[tuple[str, int]]:
    """Names that the file itself gives to something."""
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and is_assigned(node):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and is_assigned(node):
            yield node.attr, node.lineno


def words_of(name: str) -> list[str]:
    """The words of a name in lower case: `LetterRow` and `letter_row` are letter and row."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def patched_times(file: SourceFile) -> Iterator[str]:
    """Times of Penstock that a test replaces in a module, where all other tests would see them."""
    for line, name in replaced_names(file):
        constant = TIME_CONSTANT.fullmatch(name)
        if constant is not None:
            yield file.at(line, f"patches {name}; pass a timing of that layer instead")


def replaced_names(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Full names that the file assigns to, or has a patching call assign to."""
    for node in file.nodes:
        if isinstance(node, ast.Attribute) and is_assigned(node):
            yield node.lineno, file.dotted(node)
        elif isinstance(node, ast.Call) and last_name(node.func) in PATCHING_CALLS:
            match [text_of(argument) for argument in node.args[:2]]:
                case [str() as name, *_]:
                    yield node.lineno, name
                case [None, str() as name]:
                    yield node.lineno, f"{file.dotted(node.args[0])}.{name}"


def last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def text_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


@cache
def files(suffix: str, *folders: str) -> list[SourceFile]:
    found = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob(f"*{suffix}")):
            relative = path.relative_to(ROOT)
            if not any(part.startswith(".") or part == "node_modules" for part in relative.parts):
                found.append(
                    SourceFile(PurePosixPath(relative.as_posix()), path.read_text(encoding="utf-8"))
                )
    return found


def source() -> list[SourceFile]:
    return files(".py", "src")


def under_tests() -> list[SourceFile]:
    return files(".py", "tests", "src/penstock/contract")


def all_python() -> list[SourceFile]:
    return files(".py", "src", "tests", "benchmarks", "examples", "scripts")


def python_sql_and_lua() -> list[SourceFile]:
    return [*all_python(), *files(".sql", "src"), *files(".lua", "src")]


def markdown() -> list[SourceFile]:
    return files(".md", ".")


CHECKED: dict[Check, Callable[[], list[SourceFile]]] = {
    code_from_data: source,
    prints: source,
    impurity: source,
    swallowed_exceptions: all_python,
    fixed_sleeps: under_tests,
    skipped_tests: under_tests,
    leftover_markers: python_sql_and_lua,
    blanket_type_ignores: all_python,
    vague_names: python_sql_and_lua,
    broken_links: markdown,
    foreign_state_changes: source,
    retired_words: all_python,
    patched_times: under_tests,
}
"""Each check, and the files that it is for."""


@cache
def all_findings() -> dict[Check, list[str]]:
    """Of every check.

    A file is parsed once for all of them, and its tree is gone before the next one is parsed.
    """
    checks_of: dict[SourceFile, list[Check]] = defaultdict(list)
    for check, checked in CHECKED.items():
        for file in checked():
            checks_of[file].append(check)
    findings: dict[Check, list[str]] = {check: [] for check in CHECKED}
    for file, checks in checks_of.items():
        parsed = replace(file)
        for check in checks:
            findings[check] += check(parsed)
    return findings


def test_the_checks_see_the_tree():
    assert source()
    assert PurePosixPath("tests/tidy/test_tidy.py") in {file.path for file in under_tests()}
    assert markdown()


@pytest.mark.parametrize("check", CHECKED, ids=lambda check: check.__name__)
def test_nothing_is_found(check: Check):
    findings = all_findings()[check]
    assert not findings, "\n" + "\n".join(findings)


CAUGHT: list[tuple[Check, str, str]] = [
    (code_from_data, "src/penstock/a.py", "eval('1')"),
    (code_from_data, "src/penstock/a.py", "import builtins\nbuiltins.exec('1')"),
    (code_from_data, "src/penstock/a.py", "def f():\n    from pickle import loads"),
    (prints, "src/penstock/worker/a.py", "print('hello')"),
    (impurity, "src/penstock/engine/a.py", "import os.path"),
    (impurity, "src/penstock/definition/a.py", "def f():\n    from time import monotonic"),
    (impurity, "src/penstock/engine/a.py", "from datetime import UTC, datetime\ndatetime.now(UTC)"),
    (impurity, "src/penstock/engine/a.py", "import datetime as dt\ndt.datetime.now(dt.UTC)"),
    (swallowed_exceptions, "src/penstock/a.py", "try:\n    f()\nexcept Exception:\n    pass"),
    (
        swallowed_exceptions,
        "src/penstock/a.py",
        "try:\n    f()\nexcept (KeyError, BaseException):\n    ...",
    ),
    (swallowed_exceptions, "src/penstock/a.py", "try:\n    f()\nexcept:\n    pass"),
    (
        swallowed_exceptions,
        "src/penstock/a.py",
        "from contextlib import suppress\nwith suppress(Exception):\n    f()",
    ),
    (fixed_sleeps, "tests/a.py", "import time\ntime.sleep(0)"),
    (fixed_sleeps, "tests/a.py", "from time import sleep as nap\nnap(delay)"),
    (fixed_sleeps, "tests/a.py", "import asyncio\nasync def f():\n    await asyncio.sleep(0.1)"),
    (
        fixed_sleeps,
        "tests/a.py",
        "from asyncio import sleep\nasync def f():\n    await sleep(delay=1)",
    ),
    (skipped_tests, "tests/a.py", "import pytest\npytest.skip('later')"),
    (
        skipped_tests,
        "tests/a.py",
        "import pytest\n@pytest.mark.skipif(True, reason='x')\ndef test_a(): ...",
    ),
    (skipped_tests, "tests/a.py", "from pytest import mark\npytestmark = mark.xfail"),
    (skipped_tests, "tests/a.py", "import pytest\nredis = pytest.importorskip('redis')"),
    (leftover_markers, "src/penstock/a.py", "x = 1  # TODO: two"),
    (leftover_markers, "src/penstock/a.lua", "-- FIXME"),
    (blanket_type_ignores, "src/penstock/a.py", "x: int = 'a'  # type: ignore"),
    (vague_names, "src/penstock/utils.py", ""),
    (vague_names, "src/penstock/core/states.py", ""),
    (broken_links, "docs/a.md", "See [the guide](missing.md#part)."),
    (broken_links, "docs/a.md", "[guide]: missing.md"),
    (foreign_state_changes, "src/penstock/engine/ending.py", "run.state = state"),
    (foreign_state_changes, "src/penstock/orchestrator/a.py", "run.state, run.attempt = a, 1"),
    (retired_words, "src/penstock/a.py", "def steer(execution_id): ..."),
    (retired_words, "src/penstock/a.py", "class WishList: ..."),
    (retired_words, "src/penstock/a.py", "self._tenures = tenure = 1"),
    (retired_words, "src/penstock/a.py", "MOST_BYTES = 1"),
    (retired_words, "tests/a.py", "BYTES_MOST = 1"),
    (
        patched_times,
        "tests/a.py",
        "from penstock.worker import runtime\nmonkeypatch.setattr(runtime, 'RETRY_SECONDS', 0.0)",
    ),
    (
        patched_times,
        "tests/a.py",
        "import penstock.worker.runtime as module\nmodule.WAIT_SECONDS_MAX = 0.0",
    ),
    (patched_times, "tests/a.py", "patch.setattr('penstock.api.events.SECONDS', 0.0)"),
    (
        patched_times,
        "tests/a.py",
        "from penstock.api import events\nwith patch.object(events, 'WAIT_SECONDS', 0.0): ...",
    ),
]

ALLOWED: list[tuple[Check, str, str]] = [
    (code_from_data, "src/penstock/a.py", "program.eval(data)"),
    (prints, "src/penstock/cli/a.py", "print('hello')"),
    (impurity, "src/penstock/stores/a.py", "import os"),
    (
        impurity,
        "src/penstock/engine/a.py",
        "from penstock.engine import time\nfrom . import random",
    ),
    (swallowed_exceptions, "src/penstock/a.py", "try:\n    f()\nexcept KeyError:\n    pass"),
    (
        swallowed_exceptions,
        "src/penstock/a.py",
        "try:\n    f()\nexcept Exception as error:\n    report(error)",
    ),
    (
        fixed_sleeps,
        "tests/a.py",
        "import asyncio\nasync def f(clock):\n    await asyncio.sleep(0)\n    await clock.sleep(1)",
    ),
    (skipped_tests, "tests/a.py", "stream.skip()"),
    (leftover_markers, "src/penstock/a.py", "x = 'TODO'"),
    (blanket_type_ignores, "src/penstock/a.py", "x: int = 'a'  # type: ignore[assignment]"),
    (vague_names, "src/penstock/engine/states.py", ""),
    (foreign_state_changes, STATE_WRITER, "run.state = state"),
    (foreign_state_changes, "src/penstock/engine/a.py", "if run.state == state: ..."),
    (foreign_state_changes, "src/penstock/cli/a.py", "row.state = state"),
    (retired_words, "src/penstock/a.py", "BYTES_MAX = 1\nbooked = most_common = 1"),
    (retired_words, "tests/a.py", "def test_the_last_wish_counts(): ..."),
    (
        patched_times,
        "tests/a.py",
        "from penstock.api import failures\nmonkeypatch.setattr(failures, 'BATCH', 2)",
    ),
    (patched_times, "tests/a.py", "monkeypatch.setattr(desk.stores.blobs, 'get', slow)"),
    (patched_times, "tests/a.py", "WAIT_SECONDS = 1\nsetattr(waiting, 'WAIT_SECONDS', 2)"),
    (
        broken_links,
        "CONTRIBUTING.md",
        "[a](LICENSE) [b](https://example.org) [c](#part) `[d](missing.md)`",
    ),
    (broken_links, "docs/a.md", "```\n[a](missing.md)\n```"),
]


@pytest.mark.parametrize(("check", "path", "text"), CAUGHT)
def test_a_violation_is_caught(check: Check, path: str, text: str):
    findings = list(check(SourceFile(PurePosixPath(path), text)))
    assert len(findings) == 1
    assert re.match(rf"{re.escape(path)}:\d+: .", findings[0])


@pytest.mark.parametrize(("check", "path", "text"), ALLOWED)
def test_what_only_looks_like_a_violation_is_let_through(check: Check, path: str, text: str):
    assert not list(check(SourceFile(PurePosixPath(path), text)))


def test_every_check_is_shown_to_catch_something():
    shown = {check.__name__ for check, _, _ in CAUGHT}
    checks = {name for name, value in globals().items() if is_check(value)}
    assert checks == shown
    assert checks == {check.__name__ for check in CHECKED}, "and each one is for some files"


def is_check(value: object) -> bool:
    return getattr(value, "__annotations__", {}) == {"file": SourceFile, "return": Iterator[str]}
