"""Maps, loops, signals, approvals and catches in the editor, with the schema of the server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api_server import Running, running_service
from tests.ui.boxes import box
from tests.ui.editing import paste, text_box
from tests.ui.shop import Shop

EVERYTHING = {
    "name": "everything",
    "nodes": [
        {"id": "list", "handler": "echo", "config": {"items": [1, 2]}},
        {
            "id": "each",
            "for_each": "{{ list.items }}",
            "as": "page",
            "key": "{{ page }}",
            "max_parallel": 20,
            "on_item_failure": "collect",
            "max_failures": "5%",
            "collect": "{{ fetch.text }}",
            "nodes": [{"id": "fetch", "handler": "echo", "config": {"text": "{{ page }}"}}],
        },
        {
            "id": "loop",
            "depends_on": ["each"],
            "handler": "echo",
            "repeat": {"until": "round == 3", "max_rounds": 5, "every_seconds": 1},
        },
        {
            "id": "paid",
            "depends_on": ["loop"],
            "handler": "signal",
            "config": {
                "names": ["paid", "refused"],
                "correlation": "7",
                "timeout_seconds": 60,
            },
        },
        {
            "id": "release",
            "depends_on": ["paid"],
            "handler": "approval",
            "config": {"title": "Go?", "form": {"type": "object"}, "expires_seconds": 60},
        },
        {"id": "nap", "handler": "wait", "config": {"seconds": 1}},
        {"id": "rescue", "catches": [{"node": "paid", "on": ["timeout"]}], "handler": "noop"},
    ],
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("editor-flow"), Shop().registry) as running:
        yield running


def open_editor(page: Page, service: Running, document: Any) -> None:
    page.goto(f"{service.address}/ui/edit")
    expect(page.locator(".ed-verdict")).to_have_text(re.compile("No problems"))
    paste(page, document)


def problems(page: Page) -> Locator:
    return page.get_by_role("list", name="Problems").get_by_role("button")


def type_before_the_end(page: Page, characters: int, text: str) -> None:
    """Type in front of the last characters of the text."""
    text_box(page).click()
    page.keyboard.press("Control+End")
    for _ in range(characters):
        page.keyboard.press("ArrowLeft")
    page.keyboard.type(text)


def test_all_kinds_of_nodes_are_written_without_a_problem(page: Page, service: Running) -> None:
    open_editor(page, service, EVERYTHING)
    expect(box(page, "rescue")).to_be_visible()
    expect(page.locator(".ed-verdict")).to_have_text(re.compile("No problems"))
    assert page.locator(".node-box").count() == len(EVERYTHING["nodes"])


@pytest.mark.parametrize(
    ("node", "typed", "offered"),
    [
        ({"id": "a", "for_each": [1], "handler": "noop"}, ', "on_item', "on_item_failure"),
        ({"id": "a", "for_each": [1], "handler": "noop"}, ', "max_par', "max_parallel"),
        ({"id": "a", "handler": "noop"}, ', "repe', "repeat"),
        ({"id": "a", "handler": "noop"}, ', "catc', "catches"),
        ({"id": "a", "handler": "noop", "retry": {"max_attempts": 1}}, ', "for_', "for_each"),
    ],
)
def test_the_fields_of_a_node_are_completed(
    page: Page, service: Running, node: dict[str, Any], typed: str, offered: str
) -> None:
    open_editor(page, service, json.dumps({"name": "typed", "nodes": [node]}))
    type_before_the_end(page, 3, typed)
    expect(page.get_by_role("option").filter(has_text=offered).first).to_be_visible()
    expect(page.locator(".cm-completionInfo")).not_to_be_empty()


@pytest.mark.parametrize(
    ("node", "characters", "typed", "offered"),
    [
        ({"id": "a", "handler": "noop", "repeat": {}}, 4, '"max_r', "max_rounds"),
        ({"id": "a", "handler": "signal", "config": {}}, 4, '"corr', "correlation"),
        ({"id": "a", "handler": "approval", "config": {}}, 4, '"expires', "expires_seconds"),
        ({"id": "a", "handler": "wait", "config": {}}, 4, '"unt', "until"),
        ({"id": "a", "for_each": [1], "nodes": [{"id": "b"}]}, 5, ', "hand', "handler"),
    ],
)
def test_what_is_inside_is_completed(
    page: Page,
    service: Running,
    node: dict[str, Any],
    characters: int,
    typed: str,
    offered: str,
) -> None:
    open_editor(page, service, json.dumps({"name": "typed", "nodes": [node]}))
    type_before_the_end(page, characters, typed)
    expect(page.get_by_role("option").filter(has_text=offered).first).to_be_visible()


def test_mistakes_inside_of_a_map_are_marked_where_they_are(page: Page, service: Running) -> None:
    nodes = [
        {
            "id": "each",
            "for_each": [1],
            "on_item_failure": "ignore",
            "nodes": [{"id": "ask", "handler": "approval", "config": {"titel": "x", "title": "y"}}],
        }
    ]
    open_editor(page, service, {"name": "typed", "nodes": nodes})
    expect(problems(page).filter(has_text="titel").first).to_be_visible()
    expect(problems(page).filter(has_text="skip").first).to_be_visible()
    expect(text_box(page).locator(".cm-lintRange-error").filter(has_text="ignore")).to_be_visible()
    problems(page).filter(has_text="titel").first.click()
    expect(page.locator(".cm-activeLine").first).to_contain_text("titel")
