"""The pages for users, and the fenced blocks in them.

A comment before a block (`<!-- refused -->`) says how it is to be judged, without a word on the
page. Marks may share a comment, separated by commas:

| mark | before | means | |---|---|---| | `fragment` | python | a piece that can't run alone; only
its syntax is checked | | `prints` | text | what the Python block before it prints | | `unknown
handlers` | json, yaml | a document with handlers that only the reader has | | `refused` | json,
yaml | a document that must not compile | | `output` | json | the output of the document before it,
run with stand-ins for HTTP and LLM calls | | `served` | console, python | runs beside `penstock
dev`: `localhost:8000` is that one | | `up` | text | what `penstock up` prints when everything has
started | | `file: NAME` | any | is in the working directory of the page's later commands and
scripts |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARKS = frozenset({"fragment", "prints", "unknown handlers", "refused", "output", "served", "up"})
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

    @property
    def location(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README.md and everything under docs/, as far as it is there."""
    return [
        path
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        if path.is_file()
    ]


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
            file = next(
                (mark.removeprefix("file:").strip() for mark in marks if mark.startswith("file:")),
                None,
            )
            plain = frozenset(mark for mark in marks if not mark.startswith("file:"))
            blocks_found.append(
                Block(page, number, fence["language"], "\n".join(inside) + "\n", plain, file)
            )
            marks = []
        elif comment := COMMENT.match(line.strip()):
            marks += [mark.strip() for mark in comment[1].split(",")]
        elif line.strip():
            marks = []
    return blocks_found


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
