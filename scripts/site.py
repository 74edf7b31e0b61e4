"""Hooks of the documentation site (mkdocs.yml): what a page gets when the site is built.

- Links that leave docs/ lead to the repository, if pyproject.toml says where that is; otherwise
  only their text is left.
- Records of decisions come last in a search.
- `<!-- made from: commands -->` on a page is replaced by the help of every command, and
  `<!-- made from: metrics -->` by the metrics that a process shows.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.site_pages import MADE  # noqa: E402 -- mkdocs loads this file by its path

LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
MARK = re.compile(r"^<!-- made from: (\w+) -->$", re.MULTILINE)
INNER = ("decisions/", "internals.md", "faults.md")
"""Users seldom look for these: a search shows them last."""
WITHOUT_NEIGHBOURS = ("README.md", "tutorial.md")
"""Alone under their tab: an empty list beside them would only take room."""
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    path = page.file.src_uri
    if path.startswith(INNER):
        page.meta["search"] = {"boost": 0.3}
    if path in WITHOUT_NEIGHBOURS:
        page.meta["hide"] = ["navigation"]
    folder = Path(config["docs_dir"]) / Path(page.file.src_uri).parent
    docs = Path(config["docs_dir"]).resolve()
    made = MARK.sub(lambda mark: MADE[mark[1]](), markdown)
    return _outside_fences(made, lambda text: LINK.sub(_rewriter(folder, docs), text))


def _outside_fences(markdown: str, change: Any) -> str:
    parts: list[str] = []
    end = 0
    for fence in FENCED.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def _rewriter(folder: Path, docs: Path) -> Any:
    def rewrite(link: re.Match[str]) -> str:
        target, _, anchor = link["target"].partition("#")
        if not target or re.match(r"[a-z+]+:", target):
            return link[0]
        path = Path(os.path.normpath(folder / target))
        if path.is_relative_to(docs) and path.is_file():
            return link[0]
        if not path.exists():  # mkdocs reports it
            return link[0]
        address = _repository()
        if address is None:
            return link["text"]
        kind = "tree" if path.is_dir() else "blob"
        suffix = f"#{anchor}" if anchor else ""
        return f"[{link['text']}]({address}/{kind}/main/{path.relative_to(ROOT)}{suffix})"

    return rewrite


@cache
def _repository() -> str | None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = {name.lower(): url for name, url in project.get("urls", {}).items()}
    for name in ("repository", "source", "source code"):
        if name in urls:
            return str(urls[name]).rstrip("/").removesuffix(".git")
    return None
