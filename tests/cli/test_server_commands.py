"""The commands that talk to a server, against `penstock dev`: real processes on both sides."""

import json
import re
import signal
from collections.abc import Iterator

import pytest

import penstock as package
from tests.cli.commands import (
    TIMEOUT_SECONDS,
    Terminal,
    foreign_escapes,
    nodes,
    start,
    steady,
    visible,
    write,
)
from tests.cli.serving import Desk, dev

EVIL = "\x1b[2J\x1b]0;owned\x07[bold red]marked[/]\u202e"
OK = {
    **nodes({"id": "hello", "handler": "echo", "config": {"text": "Hi {{ input.name }}"}}),
    "name": "ok",
}
NAP = {**nodes({"id": "nap", "handler": "sleep", "config": {"seconds": 3600}}), "name": "nap"}
DOOMED = {
    "name": "doomed",
    "nodes": [
        {"id": "first", "handler": "noop"},
        {
            "id": "a/b",
            "handler": "fail",
            "dependencies": ["first"],
            "config": {"message": f"no {EVIL}luck"},
            "retry": {"max_attempts": 1},
        },
        {"id": "last", "handler": "noop", "dependencies": ["a/b"]},
    ],
}
LATER = {
    "name": "later",
    "nodes": [
        {
            "id": "flaky",
            "handler": "fail",
            "config": {"message": "not yet"},
            "retry": {
                "max_attempts": 2,
                "initial_delay_seconds": 3600,
                "max_delay_seconds": 3600,
                "jitter_seconds": 0,
            },
        }
    ],
}
DOCUMENTS = {"ok.json": OK, "nap.json": NAP, "doomed.json": DOOMED, "later.json": LATER}
FILES = {name: json.dumps(document) for name, document in DOCUMENTS.items()}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    write(folder, FILES)
    with dev(folder) as url:
        yield Desk(folder, url)


def test_submit_prints_the_id_and_the_others_take_it(desk: Desk):
    execution_id = desk.out("submit", "ok.json", "--input", '{"name": "Ada"}', "--label", "team=x")
    watched = desk("watch", execution_id)
    assert watched.returncode == 0
    assert steady(watched.stdout).endswith("COMPLETED in <duration>: 1 completed\n")
    assert json.loads(desk.out("results", execution_id)) == {"hello": {"text": "Hi Ada"}}
    assert json.loads(desk.out("results", execution_id, "--node", "hello")) == {"text": "Hi Ada"}
    assert desk.json("results", execution_id)["completed"]
    execution = desk.json("show", execution_id)
    assert (execution["state"], execution["labels"]) == ("COMPLETED", {"team": "x"})
    assert f"{execution_id}  ok@1 " in desk.out("list", "--label", "team=x", "--state", "completed")


def test_submit_takes_names_files_and_standard_input(desk: Desk):
    desk.out("submit", "ok.json", "--input", '{"name": "Ada"}')
    assert desk.out("put", "ok.json") == "ok@2"
    write(desk.folder, {"input.json": '{"name": "Eve"}'})
    named = desk("submit", "ok@2", "--input", "@input.json", "--wait")
    assert named.returncode == 0
    assert "Hi Eve" in named.stdout
    piped = desk(
        "submit", "-", "--input", '{"name": "Mary"}', "--wait", "--json", stdin=FILES["ok.json"]
    )
    assert json.loads(piped.stdout)["output"] == {"hello": {"text": "Hi Mary"}}
    assert desk.json("submit", "ok", "--input", '{"name": "x"}')["version"] == 2


def test_the_same_key_starts_it_once(desk: Desk):
    order = ("submit", "nap.json", "--key-once", "order-7")
    first = desk.out(*order)
    assert desk.out(*order) == first
    reused = desk(*order, "--input", '{"x": 1}')
    assert (reused.returncode, reused.stdout) == (2, "")
    assert "'order-7' was used for another request" in reused.stderr
    desk.out("cancel", first)


def test_errors_are_listed_and_counted(desk: Desk):
    execution_id = desk.failed()
    assert execution_id in [
        item["execution_id"] for item in desk.json("errors", "--workflow", "doomed")["items"]
    ]
    assert execution_id in desk.out("errors", "--node", "a/b", "--text", "luck")
    (group,) = desk.json("errors", "--group", "--workflow", "doomed")["items"]
    assert (group["node_id"], group["category"]) == ("a/b", "handler")
    assert foreign_escapes(desk.out("errors", "--group")) == []
    assert desk("errors", "--workflow", "nobody").stderr == "No errors.\n"


def test_a_failed_execution_is_explained_and_retried(desk: Desk):
    execution_id = desk.failed()
    printed = desk("show", execution_id)
    assert printed.returncode == 0
    assert "FAILED     a/b    1 " in printed.stdout
    assert (
        "✗ a/b failed  handler\n  no [bold red]marked[/]luck\n  → The handler raised this"
        in printed.stdout
    )
    results = desk("results", execution_id)
    assert (results.returncode, results.stdout) == (1, "{}\n")
    assert "the execution is FAILED: no [bold red]marked[/]luck" in results.stderr

    preview = desk.out("retry", execution_id, "--preview")
    assert re.search(r"^a/b +failed$", preview, re.MULTILINE)
    assert preview.endswith("2 nodes would run on version 1; 1 output would be reused.")
    assert "3 nodes would run" in desk.out("retry", execution_id, "--preview", "--from", "first")
    again = desk("retry", execution_id, "--wait")
    assert again.returncode == 1
    assert "output reused from an earlier execution" in again.stdout
    refused = desk("retry", execution_id, "--version", "99")
    assert refused.returncode == 2


def test_nothing_from_data_reaches_the_terminal_as_a_command(desk: Desk):
    execution_id = desk.failed()
    for command in (
        ["show", execution_id],
        ["list"],
        ["dlq", "list"],
        ["watch", execution_id],
        ["show", EVIL],
    ):
        done = desk(*command)
        assert not set("\x07\x1b\u202e") & set(done.stdout + done.stderr)
    for command in (["list"], ["dlq", "list"], ["show", execution_id]):
        terminal = Terminal(*command, "--url", desk.url, cwd=desk.folder, columns=200)
        assert terminal.close() == 0
        assert not foreign_escapes(terminal.screen)
        assert "no [bold red]marked[/]luck" in visible(terminal.screen)


def test_dead_letters(desk: Desk):
    first, second, third = (desk.failed() for _ in range(3))
    items = desk.json("dlq", "list", "--workflow", "doomed", "--category", "handler")["items"]
    ids = {item["execution_id"]: str(item["id"]) for item in items}
    assert {first, second, third} <= ids.keys()
    listed = desk.out("dlq", "list", "--execution", first).splitlines()
    assert listed[0].split()[:4] == ["ID", "EXECUTION", "WORKFLOW", "NODE"]
    assert listed[1].split()[:4] == [ids[first], first, "doomed@1", "a/b"]
    assert f"a/b (fail) of doomed@1, execution {first}" in desk.out("dlq", "show", ids[first])

    assert (
        desk.out("dlq", "retry", "--execution", first, "--preview")
        == f"{first}: 2 nodes would run, 1 output reused"
    )
    retry_id = desk.out("dlq", "retry", ids[first])
    assert desk.json("show", retry_id)["retry_of"] == first
    assert desk.out("dlq", "drop", ids[second]) == "1 dead letter dropped"
    closed = {
        str(item["id"]): item["closed"] for item in desk.json("dlq", "list", "--all")["items"]
    }
    assert (closed[ids[first]], closed[ids[second]]) == ("retried", "dropped")
    assert [
        item["letters"] for item in desk.json("dlq", "retry", "--execution", third)["items"]
    ] == [[int(ids[third])]]
    desk.out("dlq", "drop", "--all")


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_nothing_given_does_not_mean_all_dead_letters(desk: Desk, verb: str):
    done = desk("dlq", verb)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"penstock dlq {verb}: name ids or a filter, or use --all\n")
    assert desk("dlq", verb, "7", "--all").returncode == 2


def test_versions_and_aliases(desk: Desk):
    for n in (1, 2):
        write(
            desk.folder,
            {"two.json": json.dumps({**nodes({"id": f"n{n}", "handler": "noop"}), "name": "two"})},
        )
        assert desk.out("put", "two.json") == f"two@{n}"
    assert desk.out("alias", "set", "two", "stable", "1") == "two@stable is 1"
    assert [line.split()[0] for line in desk.out("versions", "two").splitlines()] == [
        "VERSION",
        "2",
        "1",
    ]
    assert re.search(r"^two +2 +2 +stable=1 ", desk.out("versions"), re.MULTILINE)
    assert desk.json("submit", "two@stable")["version"] == 1
    assert desk.out("alias", "set", "two", "stable", "1=90,2=10") == "two@stable is 1:90,2:10"
    assert desk("alias", "set", "two", "stable", "x").returncode == 2
    assert desk.out("alias", "remove", "two", "stable") == "two@stable is removed"
    assert desk("submit", "two@stable").returncode == 2


def test_pause_resume_and_cancel(desk: Desk):
    execution_id = desk.out("submit", "nap.json")
    for verb in ("pause", "resume", "cancel"):
        assert desk.out(verb, execution_id) == f"{verb} requested: {execution_id}"
    watched = desk("watch", execution_id, "--json")
    assert watched.returncode == 1
    events = [json.loads(line) for line in watched.stdout.splitlines()]
    assert (events[0]["seq"], events[-1]["to"]) == (1, "CANCELLED")
    late = desk("resume", execution_id)
    assert (late.returncode, late.stdout) == (2, "")
    assert (
        late.stderr
        == f"penstock resume: execution {execution_id} is CANCELLED; it can't be changed any more\n"
    )


def test_what_changes_something_says_it_as_json(desk: Desk):
    execution_id = desk.out("submit", "nap.json")
    assert desk.json("cancel", execution_id) == {
        "items": [{"execution_id": execution_id, "requested": "cancel"}]
    }
    desk("watch", execution_id)
    refused = desk("cancel", execution_id, "--json")
    assert (refused.returncode, json.loads(refused.stdout)) == (2, {"items": []})
    desk.failed()
    (item,) = desk.json("dlq", "list", "--limit", "1")["items"]
    assert desk.json("dlq", "drop", str(item["id"])) == {"dropped": [item["id"]]}
    write(desk.folder, {"named.json": json.dumps({**OK, "name": "named"})})
    desk.out("put", "named.json")
    desk.out("alias", "set", "named", "old", "1")
    assert desk.json("alias", "remove", "named", "old") == {
        "workflow": "named",
        "alias": "old",
        "removed": True,
    }


def test_put_stores_and_starts_nothing(desk: Desk):
    document = {**nodes({"id": "a", "handler": "noop"}), "name": "only-stored"}
    write(desk.folder, {"stored.json": json.dumps(document)})
    assert desk.out("put", "stored.json") == "only-stored@1"
    assert desk.json("list", "--workflow", "only-stored") == {"items": []}
    assert desk.json("versions", "only-stored")["items"][0]["version"] == 1


BAD_JSON = """\
{
  "nodes": [
    {"id": "a", "handler": "call_external_service", "config": {"ulr": "x"}},
    {"id": "b", "handler": "nop"}
  ]
}
"""
BAD_YAML = "nodes:\n  - id: a\n    handler: nop\n    depends_on: [b]\n"


@pytest.mark.parametrize("command", ["put", "submit"])
@pytest.mark.parametrize(
    ("file", "text", "places"),
    [
        ("bad.json", BAD_JSON, ["3:53", "3:64", "4:17"]),
        ("bad.yaml", BAD_YAML, ["3:5", "4:18"]),
        ("list.json", "\n []", ["2:2"]),
        ("latin.json", '{"name": "\udcff"}', ["1:11"]),
    ],
)
def test_a_refused_document_has_line_and_column_of_every_problem(
    desk: Desk, command: str, file: str, text: str, places: list[str]
):
    (desk.folder / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    done = desk(command, file)
    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(re.findall(rf"{file}:(\d+:\d+) ", done.stderr)) == places
    assert "--handlers" not in done.stderr
    if "nop" in text:
        assert done.stderr.splitlines()[-1].startswith("A server knows the handlers of its workers")


def test_workers(desk: Desk):
    fleet = desk.json("workers")
    assert [len(fleet[kind]) for kind in ("workers", "orchestrators")] == [1, 1]
    assert desk.out("workers").startswith("WORKER ID")


@pytest.mark.parametrize("ending", ["watch", "submit"])
def test_ctrl_c_ends_the_view_and_not_the_execution(desk: Desk, ending: str):
    execution_id = desk.out("submit", "nap.json", "--key-once", ending)
    command = {
        "watch": ("watch", execution_id),
        "submit": ("submit", "nap.json", "--key-once", "submit", "--wait"),
    }
    with start(*command[ending], "--url", desk.url, cwd=desk.folder) as process:
        assert process.stdout
        while "nap        RUNNING" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, error) == (130, "")
    assert f"The execution goes on; 'penstock watch {execution_id}' shows it again.\n" in out
    assert desk.json("show", execution_id)["state"] == "RUNNING"
    desk.out("cancel", execution_id)


def test_watch_says_when_a_node_is_tried_again(desk: Desk):
    execution_id = desk.out("submit", "later.json")
    with start("watch", execution_id, "--url", desk.url, cwd=desk.folder) as process:
        assert process.stdout
        line = process.stdout.readline()
        while "RETRYING" not in line:
            assert line, "it ended before the node was to be tried again"
            line = process.stdout.readline()
        desk.out("cancel", execution_id)
        process.communicate(timeout=TIMEOUT_SECONDS)
    assert re.search(r"again in (1 h 00 min|59 min \d\d s): not yet$", line)


def test_an_execution_that_runs_is_shown_with_how_long_it_has_run(desk: Desk):
    execution_id = desk.out("submit", "nap.json")
    last = desk.out("show", execution_id).splitlines()[-1]
    assert re.fullmatch(r"(PENDING|RUNNING) for (<1 ms|\d+ ms|\d+\.\d s): 1 \w+", last)
    desk.out("cancel", execution_id)


def test_watch_on_a_terminal_is_the_live_table(desk: Desk):
    execution_id = desk.out("submit", "nap.json")
    terminal = Terminal("watch", execution_id, "--url", desk.url, cwd=desk.folder)
    terminal.read_until("running")
    desk.out("cancel", execution_id)
    assert terminal.close() == 1
    assert not foreign_escapes(terminal.screen)
    screen = visible(terminal.screen)
    assert "■ cancelled  nap" in screen
    assert "CANCELLED in" in screen.splitlines()[-1]


def test_a_reader_that_goes_away_ends_the_command(desk: Desk):
    execution_id = desk.out("submit", "nap.json")
    with start("watch", execution_id, "--url", desk.url, cwd=desk.folder) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        desk.out("cancel", execution_id)
        assert process.stderr.read() == ""
        assert process.wait(TIMEOUT_SECONDS) == 141


def test_doctor_finds_the_server_and_who_has_the_store(desk: Desk):
    report = desk.json("doctor")
    checks = {check["check"]: check for check in report["checks"]}
    assert report["settings"]["port"] == 8000
    assert checks["server"]["outcome"] == "ok"
    assert "is in use by process" in checks["store"]["text"]
    assert f"penstock {package.__version__}" in desk.out("doctor")
