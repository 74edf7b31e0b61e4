"""The documentation site builds strictly, needs nothing from elsewhere and leaves nothing out."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import markdown
import pytest
import yaml
from markdown_it import MarkdownIt

import penstock
from penstock import testing
from penstock.cli.app import COMMANDS
from scripts.site_pages import commands, metrics
from tests.deploy.promql import exposed_samples
from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BUILD_SECONDS = 110
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
STRUCTURE = ("li", "ul", "ol", "table", "tr", "pre", "h1", "h2", "h3")
EXTENSIONS = ["admonition", "attr_list", "md_in_html", "tables", "pymdownx.superfences"]
METRIC = re.compile(r"`(penstock_\w+)(?:\{(\w+(?:,\w+)*)\})?`")


class Assets(HTMLParser):
    """What a browser loads by itself when it shows the page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        address = attributes.get(LOADED.get(tag, ""))
        if tag == "link" and attributes.get("rel") not in {"canonical", "next", "prev"}:
            address = attributes.get("href")
        if address:
            self.addresses.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert not ended.returncode, ended.stderr
    return target


def test_the_site_builds_and_has_a_search_index(site: Path):
    assert (site / "index.html").is_file()
    index = (site / "search/search_index.json").read_text(encoding="utf-8")
    assert "tutorial" in index


def test_pages_load_nothing_from_elsewhere(site: Path):
    for path in site.rglob("*.html"):
        assets = Assets()
        assets.feed(path.read_text(encoding="utf-8"))
        foreign = [name for name in assets.addresses if re.match(r"(https?:)?//", name)]
        assert not foreign, f"{path.relative_to(site)} loads {foreign}"


def test_every_link_inside_the_site_leads_somewhere(site: Path):
    """Also those that are made from docstrings and by the theme."""
    for path in site.rglob("*.html"):
        if path.name == "404.html":
            continue
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r'<a[^>]* href="([^"#?:]+)(?:#[^"]*)?"', text):
            place = (path.parent / target).resolve()
            assert place.exists(), f"{path.relative_to(site)}: {target}"


def test_old_addresses_still_work(site: Path):
    for page in ("design", "documents", "deploying", "embedding", "handlers", "observability"):
        assert (site / page / "index.html").is_file()


def test_the_python_page_has_every_public_name(site: Path):
    text = (site / "python/index.html").read_text(encoding="utf-8")
    for name in [*penstock.__all__, "testing.run", "testing.arun"]:
        assert re.search(rf'id="penstock\.[\w.]*\b{re.escape(name)}"', text), name
    for call in ("start", "executions", "retry_dead_letters", "health"):  # some are inherited
        assert f'id="penstock.Engine.{call}"' in text, call
    named = re.findall(r"^::: penstock\.(\w+)$", (DOCS / "python.md").read_text(), re.MULTILINE)
    assert named == penstock.__all__


def is_slot(value: Any) -> bool:
    """A field of a struct or a slot, whose meaning the class's docstring gives."""
    return inspect.ismemberdescriptor(value)


def public_members(name: str) -> list[tuple[str, Any]]:
    thing = getattr(penstock, name)
    members = [(name, thing)]
    if inspect.isclass(thing):
        ours = [kind for kind in thing.__mro__ if kind.__module__.startswith("penstock.")]
        for member, value in (item for kind in ours for item in vars(kind).items()):
            if isinstance(value, (classmethod, staticmethod)):
                value = value.__func__  # noqa: PLW2901 -- what it wraps
            is_documented = inspect.isroutine(value) or isinstance(value, property)
            if is_documented and not member.startswith("_") and not is_slot(value):
                members.append((f"{name}.{member}", value))
    return members


@pytest.mark.parametrize("name", penstock.__all__)
def test_every_public_name_has_a_docstring(name: str):
    for path, value in public_members(name):
        text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        assert text, f"penstock.{path} has no docstring"


def test_names_for_tests_have_docstrings():
    for value in (testing.run, testing.arun, testing.Run, testing.Call):
        assert value.__doc__, value


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in PAGES:
        assert f" {path.relative_to(DOCS).as_posix()}\n" in text, path


def test_every_command_is_on_its_page():
    shown = commands()
    for name in COMMANDS:
        assert f"\n## penstock {name}\n" in f"\n{shown}"
    assert "### penstock keys create" in shown
    assert "Usage: penstock keys create" in shown


def test_the_table_of_metrics_has_every_metric_and_its_labels():
    named: dict[str, set[str]] = {}
    for name, labels in METRIC.findall((DOCS / "metrics.md").read_text(encoding="utf-8")):
        named.setdefault(name, set()).update(filter(None, labels.split(",")))
    real: dict[str, set[str]] = {}
    for name, sample in exposed_samples().items():
        if name.startswith("penstock_"):
            family = re.sub(r"_(bucket|sum|count|created)$", "", name)
            real.setdefault(family, set()).update(sample.labels - {"le"})
    assert named == real
    made = metrics()
    assert all(f"| `{name}` |" in made for name in real)


def test_every_alert_has_its_section():
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8"))
    page = (DOCS / "alerts.md").read_text(encoding="utf-8")
    for rule in rules["groups"][0]["rules"]:
        section = page.partition(f"### {rule['alert']}\n")[2].partition("\n### ")[0]
        assert "**What to do.**" in section, rule["alert"]


def structure(html: str) -> dict[str, int]:
    plain = re.sub(r'<div class="highlight">.*?</div>', "<pre></pre>", html, flags=re.DOTALL)
    plain = re.sub(r"<pre>.*?</pre>", "<pre></pre>", plain, flags=re.DOTALL)
    return {tag: len(re.findall(rf"<{tag}[ >]", plain)) for tag in STRUCTURE}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_page_is_read_alike_by_the_site_and_by_github(path: Path):
    """The site's Markdown wants a blank line before a list, and four blanks inside of one."""
    text = path.read_text(encoding="utf-8")
    on_github = MarkdownIt("commonmark").enable("table").render(text)
    on_the_site = markdown.markdown(text, extensions=EXTENSIONS)
    assert structure(on_the_site) == structure(on_github)
