"""The editor: a workflow is written, mended, saved, run, and saved again as the next version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.boxes import box, having
from tests.ui.editing import paste, text_box
from tests.ui.shop import Shop

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "How the workflow is called"},
        "description": {"type": "string"},
        "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "handler": {"type": "string", "description": "What the node does"},
                "depends_on": {"type": "array", "items": {"type": "string"}},
                "timeout_seconds": {"type": "number"},
                "trigger_rule": {"enum": ["all_success", "all_done"]},
                "config": {"type": "object"},
            },
        }
    },
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("editor"), Shop().registry) as running:
        yield running


@pytest.fixture
def api(service: Running) -> Caller:
    return Caller(service.address)


@pytest.fixture(autouse=True)
def schema(page: Page) -> None:
    """A schema that these tests know."""

    def answer(route: Route) -> None:
        route.fulfill(json=SCHEMA)

    page.route("**/schema.json", answer)


def open_editor(page: Page, service: Running, path: str = "/edit") -> Locator:
    page.goto(f"{service.address}/ui{path}")
    expect(verdict(page)).to_have_text(re.compile("No problems"))
    return text_box(page)


def verdict(page: Page) -> Locator:
    return page.locator(".ed-verdict")


def problems(page: Page) -> Locator:
    return page.get_by_role("list", name="Problems").get_by_role("button")


def test_a_workflow_is_written_from_nothing_mended_saved_and_run(
    page: Page, service: Running, api: Caller
) -> None:
    page.goto(f"{service.address}/ui/workflows")
    page.get_by_role("link", name="New workflow").click()
    expect(verdict(page)).to_have_text(re.compile("No problems"))
    text_box(page).click()
    page.keyboard.press("Control+A")
    page.keyboard.type('{"name": "typed", "nodes": [{"id": "a", "handler": "ecko"')

    # the editor closes the brackets; the server sees the mistake, and it is marked in the text
    mistake = "no handler is called 'ecko'; did you mean 'echo'?"
    expect(problems(page)).to_have_text(re.compile(re.escape(mistake)))
    marked = text_box(page).locator(".cm-lintRange-error")
    expect(marked).to_have_text('"ecko"')
    expect(page.locator(".cm-lint-marker-error")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    expect(page.get_by_role("button", name="Run")).to_be_disabled()
    expect(box(page, "a")).to_be_visible()  # the graph is drawn nevertheless

    problems(page).click()
    page.keyboard.type('"echo"')
    expect(verdict(page)).to_have_text(re.compile("No problems"))
    expect(marked).to_have_count(0)

    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Save typed as a new workflow")
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(page).to_have_url(f"{service.address}/ui/edit/typed")
    stored = api.shown("/workflows/typed")
    assert stored["version"] == 1
    assert stored["definition"] == {"name": "typed", "nodes": [{"id": "a", "handler": "echo"}]}

    page.get_by_role("button", name="Run").click()
    page.get_by_role("dialog", name="Start typed@1").get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    expect(page.get_by_role("heading", level=1)).to_contain_text("typed@1")


def test_a_workflow_is_edited_compared_and_saved_as_the_next_version(
    page: Page, service: Running, api: Caller
) -> None:
    first = {
        "name": "edited",
        "nodes": [{"id": "a", "handler": "echo", "config": {"big": 9007199254740993, "f": 1.0}}],
    }
    api.store(first)
    page.goto(f"{service.address}/ui/workflows/edited")
    page.get_by_role("link", name="Edit").click()
    expect(text_box(page)).to_contain_text("9007199254740993")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    second = json.loads(json.dumps(first))
    second["nodes"].append({"id": "b", "handler": "noop", "depends_on": ["a"]})
    paste(page, second)
    expect(box(page, "b")).to_be_visible()
    expect(verdict(page)).to_have_text(re.compile("No problems"))

    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Save edited as the next version")
    expect(dialog).to_contain_text("What changes from version 1")
    expect(dialog.locator(".df-plus")).to_have_text(re.compile(r"\+\d"))
    expect(dialog.locator("td.added").filter(has_text='"id": "b"')).to_be_visible()
    expect(dialog.locator("td.removed").filter(has_text="9007199254740993")).to_have_count(0)
    assert api.shown("/workflows/edited")["version"] == 1
    dialog.get_by_role("button", name="Save the next version").click()
    expect(page.get_by_text("edited@2 is stored")).to_be_visible()
    stored = api.shown("/workflows/edited")
    assert stored["version"] == 2
    assert stored["definition"] == second
    expect(page.get_by_role("button", name="Save")).to_be_disabled()


def test_a_text_is_run_without_being_saved(page: Page, service: Running, api: Caller) -> None:
    open_editor(page, service)
    paste(page, {"name": "tried", "nodes": [{"id": "a", "handler": "echo"}]})
    expect(verdict(page)).to_have_text(re.compile("No problems"))
    page.get_by_role("button", name="Run").click()
    dialog = page.get_by_role("dialog", name="Run tried without saving")
    dialog.get_by_label("Input").fill('{"n": 7}')
    dialog.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    assert api.get("/workflows/tried").status == 404


def test_unsaved_text_is_still_there_after_a_look_at_another_page(
    page: Page, service: Running
) -> None:
    open_editor(page, service)
    paste(page, {"name": "draft", "nodes": [{"id": "kept", "handler": "noop"}]})
    expect(box(page, "kept")).to_be_visible()
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Workers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("Workers"))
    page.go_back()
    expect(text_box(page)).to_contain_text('"kept"')
    page.evaluate("sessionStorage.clear()")


def test_changes_are_discarded(page: Page, service: Running, api: Caller) -> None:
    api.store({"name": "undone", "nodes": [{"id": "a", "handler": "noop"}]})
    open_editor(page, service, "/edit/undone")
    paste(page, {"name": "undone", "nodes": [{"id": "changed", "handler": "noop"}]})
    expect(box(page, "changed")).to_be_visible()
    page.get_by_role("button", name="Discard changes").click()
    expect(box(page, "a")).to_be_visible()
    expect(text_box(page)).not_to_contain_text("changed")
    expect(page.get_by_role("button", name="Discard changes")).to_have_count(0)


def test_json_becomes_yaml_and_yaml_is_stored_as_json(
    page: Page, service: Running, api: Caller
) -> None:
    open_editor(page, service)
    page.get_by_role("button", name="YAML").click()
    expect(text_box(page)).to_contain_text("name: hello")
    paste(
        page,
        "name: from-yaml\nnodes:\n  - id: a\n    handler: echo\n    config: {on: yes, n: 010}\n",
    )
    expect(verdict(page)).to_have_text(re.compile("No problems"))
    page.get_by_role("button", name="Save").click()
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    expect(page).to_have_url(f"{service.address}/ui/edit/from-yaml")
    assert api.shown("/workflows/from-yaml")["definition"] == {
        "name": "from-yaml",
        "nodes": [{"id": "a", "handler": "echo", "config": {"on": "yes", "n": "010"}}],
    }
    paste(page, "name: from-yaml\nnodes:\n  - id: a\n   handler: echo\n")
    expect(problems(page).first).to_contain_text("This isn't YAML")
    page.evaluate("localStorage.clear(); sessionStorage.clear()")


def test_fields_handlers_and_nodes_are_completed(page: Page, service: Running) -> None:
    open_editor(page, service)
    paste(page, '{"name": "completed", "nodes": [{"id": "first", "handler": "noop"}]}')
    expect(verdict(page)).to_have_text(re.compile("No problems"))
    paste(page, '{"name": "completed", "nodes": [{"id": "first", "handler": "noop"}, ]}')
    text_box(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type('{"id": "second", "han')
    option = page.get_by_role("option")
    expect(option).to_have_text(re.compile("handler"))
    expect(page.locator(".cm-completionInfo")).to_have_text("What the node does")
    option.click()
    page.keyboard.type("ste")  # a handler of a live worker
    option.filter(has_text='"step"').click()
    page.keyboard.type(', "depe')
    expect(option).to_have_text(re.compile("depends_on"))
    option.click()
    page.keyboard.type('"fi')
    expect(option).to_have_text(re.compile('"first"'))
    option.click()
    expect(verdict(page)).to_have_text(re.compile("No problems"))
    expect(text_box(page)).to_contain_text(
        '{"id": "second", "handler": "step", "depends_on": ["first"]}'
    )
    expect(page.locator(".react-flow__edge")).to_have_count(1)


def test_the_schema_marks_a_value_before_the_server_answers(page: Page, service: Running) -> None:
    open_editor(page, service)
    page.route("**/workflows/validate*", lambda route: None)  # it never answers
    paste(
        page, {"name": "typed", "nodes": [{"id": "a", "handler": "noop", "timeout_seconds": "9"}]}
    )
    expect(problems(page)).to_have_text(re.compile("must be a number"))
    expect(text_box(page).locator(".cm-lintRange-error")).to_have_text('"9"')
    page.unroute("**/workflows/validate*")


def test_the_config_of_a_handler_is_completed_and_checked(page: Page, service: Running) -> None:
    """With the schema that the server has."""
    page.unroute("**/schema.json")
    open_editor(page, service)
    page.route("**/workflows/validate*", lambda route: None)  # the schema alone has to see it
    call = {"id": "a", "handler": "http_request", "config": {"url": "api.test", "ulr": 1}}
    paste(page, {"name": "typed", "nodes": [call]})
    expect(problems(page)).to_have_text(
        [re.compile("must be an address that begins with http://"), re.compile("“ulr”")]
    )

    paste(page, '{"name": "typed", "nodes": [{"id": "a", "handler": "llm", "config": {}}]}')
    expect(problems(page)).to_have_text(re.compile("is missing"))
    page.keyboard.press("Control+End")
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    page.keyboard.type('"tools')
    expect(page.get_by_role("option")).to_have_text(re.compile("tools"))
    expect(page.locator(".cm-completionInfo")).to_have_text(
        "The functions that the model may call."
    )
    page.unroute("**/workflows/validate*")


def test_the_graph_and_the_text_lead_to_each_other(page: Page, service: Running) -> None:
    open_editor(page, service)
    greet = box(page, "greet")
    output = box(page, "output")
    output.click()
    expect(output).to_have_class(having("selected"))
    expect(page.locator(".cm-activeLine")).to_have_text(re.compile(r"^\s*\{$"))
    page.keyboard.press("Control+Home")
    expect(output).not_to_have_class(having("selected"))
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    expect(greet).to_have_class(having("selected"))


def test_a_key_that_may_only_read_can_not_save(page: Page, service: Running, tmp_path: Any) -> None:
    with running_service(tmp_path) as first:
        caller = Caller(first.address)
        key = caller.post("/keys", {"name": "reader", "scopes": ["read"]}).body["key"]
        page.goto(f"{first.address}/ui/edit")
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        expect(verdict(page)).to_have_text(re.compile("No problems"))
        expect(page.get_by_role("button", name="Save")).to_have_count(0)
        expect(page.get_by_role("button", name="Run")).to_have_count(0)
