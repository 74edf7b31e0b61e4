"""The pages for users, and the fenced blocks in them.

A comment before a block (`<!-- refused -->`) says how it is to be judged, without a word on the
page. Marks may share a comment, separated by commas:

- `fragment` (python): a piece that can't run alone; only its syntax is checked
- `prints` (text): what the Python block before it prints
- `unknown handlers` (json, yaml): a document with handlers that only the reader has
- `refused` (json, yaml): a document that must not compile
- `output` (json): the output of the document before it, run with mocks for HTTP and LLM calls
- `served` (console, python): runs beside `penstock dev`: `localhost:8000` is that one
- `up` (text): what `penstock up` prints when everything has started
- `make run` (text): what the quickstart prints
- `file: NAME` (any): is in the working directory of the page's later commands and scripts
- `of: NAME` (any, in a story): the content of a file that is there already
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
MARKS = frozenset(
    {
        "fragment",
        "prints",
        "unknown handlers",
        "refused",
        "output",
        "served",
        "up",
        "make run",
    }
)
FILE_MARKS = ("file:", "of:")
FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w-]*)[^\n]*$")
COMMENT = re.compile(r"^<!--(.*)-->$")
CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    marks: frozenset[str]
    file: str | None
    of: str | None = None

    @property
    def location(self) -> str:
        return f"{self.page}:{self.line}"


STORIES = ("README.md", "docs/tutorial.md")
"""Pages whose commands depend on each other; those of the examples are more of them."""


def pages() -> list[Path]:
    """README.md, the pages of the examples, and everything under docs/."""
    return [ROOT / "README.md", *sorted(EXAMPLES.rglob("*.md")), *sorted(DOCS.rglob("*.md"))]


def is_story(page: str) -> bool:
    """Whether the commands of a page are run in order, in one folder: `test_stories.py`."""
    return page in STORIES or page.startswith("examples/")


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def blocks() -> list[Block]:
    return [
        block
        for path in pages()
        for block in blocks_of(page_name(path), path.read_text(encoding="utf-8"))
    ]


def blocks_of(page: str, text: str) -> list[Block]:
    blocks_found: list[Block] = []
    marks: list[str] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if fence := FENCE.match(line):
            inside: list[str] = []
            for _, content in lines:
                if content.rstrip() == fence["fence"]:
                    break
                inside.append(content)
            else:
                raise AssertionError(f"{page}:{number}: the block never ends")
            file, of = (_file_named(mark, marks) for mark in FILE_MARKS)
            plain = frozenset(mark for mark in marks if not mark.startswith(FILE_MARKS))
            text_inside = "\n".join(inside) + "\n"
            blocks_found.append(
                Block(page, number, fence["language"], text_inside, plain, file, of)
            )
            marks = []
        elif comment := COMMENT.match(line.strip()):
            marks += [mark.strip() for mark in comment[1].split(",")]
        elif line.strip():
            marks = []
    return blocks_found


def _file_named(mark: str, marks: list[str]) -> str | None:
    names = [text.removeprefix(mark).strip() for text in marks if text.startswith(mark)]
    return names[0] if names else None


def before(block: Block, *languages: str) -> Block:
    """The last block of the page before this one that is in one of these languages."""
    earlier = [
        candidate
        for candidate in blocks()
        if candidate.page == block.page
        and candidate.line < block.line
        and candidate.language in languages
    ]
    assert earlier, f"{block.location}: there is no {' or '.join(languages)} block before it"
    return earlier[-1]


def files_before(block: Block) -> dict[str, str]:
    return {
        earlier.file: earlier.text
        for earlier in blocks()
        if earlier.page == block.page and earlier.line < block.line and earlier.file
    }


def code_spans() -> list[tuple[str, str]]:
    """Each `span` of each page, with its location.

    Decision records speak of other tools too, so they are left out.
    """
    spans = []
    for path in pages():
        if "decisions" in path.parts:
            continue
        fenced = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if FENCE.match(line):
                fenced = not fenced
            elif not fenced:
                spans += [(f"{page_name(path)}:{number}", span) for span in CODE.findall(line)]
    return spans
