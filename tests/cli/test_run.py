"""`penstock run` on a pipe: exit codes, the lines, `--json`, what handlers print."""

import json
import sys
from pathlib import Path
from textwrap import dedent

from tests.cli.commands import call, nodes, penstock, steady, write

HANDLERS = dedent("""
    import subprocess
    import sys
    import threading

    import penstock

    print("hello from the module")


    @penstock.handler("talk")
    def talk(config, ctx):
        print("out", "of", ctx.node_id)
        print("unfinished", end="", flush=True)
        print("error of", ctx.node_id, file=sys.stderr)
        sys.stdout.buffer.write(b"raw bytes\\n")
        subprocess.run(["echo", "from a subprocess"], check=True)
        stray = threading.Thread(target=print, args=("from a thread of its own",))
        stray.start()
        stray.join()
        ctx.log.info("logged")
        return {"said": True}


    @penstock.handler("break")
    def broken(config, ctx):
        print("about to break")
        raise ValueError(f"attempt {ctx.attempt} broke")
""")
DECISION = {"value_a": 1, "operator": "==", "value_b": 2}


def document(path: Path, value: object, **files: str) -> None:
    write(path, {"flow.json": json.dumps(value), "handlers.py": HANDLERS, **files})


def test_a_completed_execution_exits_with_0_and_a_line_for_each_change(tmp_path):
    document(
        tmp_path,
        nodes(
            {"id": "first", "handler": "echo", "config": {"x": "{{ input.x }}"}},
            {"id": "two", "handler": "decision", "dependencies": ["first"], "config": DECISION},
            {"id": "yes", "handler": "noop", "dependencies": ["two"], "condition": "two.result"},
            {"id": "output", "handler": "output", "dependencies": ["two", "first", "yes"]},
        ),
    )
    done = penstock("run", "flow.json", "--input", '{"x": [1, "a"]}', cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert steady(done.stdout) == dedent("""\
        test, 4 nodes
        execution <id>
        <time>  execution  RUNNING
        <time>  first      QUEUED
        <time>  first      RUNNING
        <time>  first      COMPLETED
        <time>  two        COMPLETED
        <time>  yes        SKIPPED    condition is false: two.result
        <time>  output     COMPLETED
        <time>  execution  COMPLETED

        output
          {
            "two": {
              "result": false
            },
            "first": {
              "x": [
                1,
                "a"
              ]
            }
          }

        COMPLETED in <duration>: 3 completed, 1 skipped
        """)


def test_a_retry_shows_the_error_and_when_it_comes_again(tmp_path):
    # shorter, and a slow machine has begun the next attempt before it shows anything
    retry = {"max_attempts": 3, "initial_delay_seconds": 1, "jitter_seconds": 0}
    document(
        tmp_path,
        nodes(
            {
                "id": "a",
                "handler": "fail",
                "config": {"times": 1, "message": "not yet"},
                "retry": retry,
            }
        ),
    )
    done = penstock("run", "flow.json", cwd=tmp_path)
    assert done.returncode == 0
    assert "<time>  a          RETRYING   again in <duration>: not yet\n" in steady(done.stdout)
    assert "<time>  a          COMPLETED  attempt 2\n" in steady(done.stdout)


def test_a_failed_execution_exits_with_1_and_says_what_failed_and_what_to_do(tmp_path):
    retry = {"max_attempts": 2, "initial_delay_seconds": 0}
    document(tmp_path, nodes({"id": "a", "handler": "break", "retry": retry}))
    done = penstock("run", "flow.json", "--handlers", "handlers.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    report = steady(done.stdout).partition("execution  FAILED\n\n")[2]
    assert report == dedent(f"""\
        ✗ a failed after 2 attempts  handler
          ValueError: attempt 2 broke
          attempt 1: ValueError: attempt 1 broke
          at {tmp_path}/handlers.py:28 in broken
          → The handler raised this error. Its traceback says where. --debug shows it.

        log of a, attempt 1
          about to break

        log of a, attempt 2
          about to break

        FAILED in <duration>: 1 failed
        """)


def test_an_optional_node_that_failed_is_one_line_of_the_report(tmp_path):
    once = {"retry": {"max_attempts": 1}}
    document(
        tmp_path,
        nodes(
            {"id": "extra", "handler": "break", "optional": True, **once},
            {"id": "main", "handler": "noop", "dependencies": ["extra"]},
        ),
    )
    done = penstock("run", "flow.json", "--handlers", "handlers.py", cwd=tmp_path)
    assert done.returncode == 0
    assert "✗ extra failed, and is optional: ValueError: attempt 1 broke\n\n" in done.stdout
    assert "optional: ValueError: attempt 1 broke" in done.stdout
    assert "log of extra" not in done.stdout
    assert "→" not in done.stdout


def test_debug_shows_the_traceback_of_a_handler(tmp_path):
    document(tmp_path, nodes({"id": "a", "handler": "break", "retry": {"max_attempts": 1}}))
    done = penstock("run", "flow.json", "--handlers", "handlers.py", "--debug", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stdout
    assert 'raise ValueError(f"attempt {ctx.attempt} broke")' in done.stdout


def test_json_is_one_object_whatever_handlers_print(tmp_path):
    document(tmp_path, nodes({"id": "a", "handler": "talk"}))
    done = penstock(
        "run",
        "flow.json",
        "--handlers",
        "handlers.py",
        "--json",
        "--label",
        "team=blue",
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    execution = json.loads(done.stdout)
    assert list(execution) == [
        "execution_id",
        "workflow",
        "version",
        "state",
        "input",
        "output",
        "error",
        "labels",
        "created_at",
        "started_at",
        "finished_at",
        "nodes",
        "priority",
        "retry_of",
        "retried_as",
    ]
    assert execution["state"] == execution["nodes"]["a"]["state"] == "COMPLETED"
    assert execution["output"] == {"a": {"said": True}}
    assert execution["labels"] == {"team": "blue"}
    stray = {"hello from the module", "raw bytes", "from a subprocess", "from a thread of its own"}
    assert set(done.stderr.splitlines()) == stray


def test_json_tells_of_a_failure_too(tmp_path):
    document(tmp_path, nodes({"id": "a", "handler": "fail", "retry": {"max_attempts": 1}}))
    done = penstock("run", "flow.json", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    execution = json.loads(done.stdout)
    assert execution["error"] == {
        "category": "handler",
        "message": "failed on purpose",
        "node_id": "a",
    }


def test_logs_shows_what_every_handler_printed_and_logged(tmp_path):
    document(tmp_path, nodes({"id": "a", "handler": "talk"}))
    done = penstock("run", "flow.json", "--handlers", "handlers.py", "--logs", cwd=tmp_path)
    log = done.stdout.partition("log of a, attempt 1\n")[2].partition("\n\n")[0].splitlines()
    assert log[:3] == ["  out of a", "  unfinished", "  error of a"]
    assert log[3].endswith(" INFO logged")


def test_a_named_store_keeps_the_execution_and_a_second_process_is_refused(tmp_path):
    probe = dedent("""
        import sys
        import subprocess

        import penstock


        @penstock.handler("probe")
        def probe(config, ctx):
            again = [sys.executable, "-m", "penstock", "run", "other.json", "--store", "sqlite:///kept.db"]
            found = subprocess.run(again, capture_output=True, text=True)
            return {"code": found.returncode, "out": found.stdout, "error": found.stderr}
    """)
    write(
        tmp_path,
        {"probe.py": probe, "other.json": json.dumps(nodes({"id": "b", "handler": "noop"}))},
    )
    document(tmp_path, nodes({"id": "a", "handler": "probe"}))
    flags = ("--store", "sqlite:///kept.db", "--handlers", "probe.py", "--json")
    done = penstock("run", "flow.json", *flags, cwd=tmp_path)
    answer = json.loads(done.stdout)["output"]["a"]
    assert (answer["code"], answer["out"]) == (2, "")
    assert "kept.db is in use by process " in answer["error"]
    assert "name another file with --store" in answer["error"]
    assert (tmp_path / "kept.db").exists()


def test_the_private_store_leaves_nothing_behind(tmp_path):
    document(tmp_path, nodes({"id": "a", "handler": "noop"}))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = penstock("run", "flow.json", cwd=tmp_path, env={"TMPDIR": str(scratch)})
    assert done.returncode == 0
    assert not list(scratch.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "flow.json",
        "handlers.py",
        "scratch",
    ]


def test_the_timeout_cancels(tmp_path):
    document(tmp_path, nodes({"id": "a", "handler": "sleep", "config": {"seconds": 600}}))
    done = penstock("run", "flow.json", "--timeout", "0.05", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "cancelling: --timeout 50 ms is over\n" in done.stdout
    assert done.stdout.endswith("It was cancelled because the --timeout was over.\n")


def test_a_document_may_come_from_standard_input_as_json_or_yaml(tmp_path):
    text = '// a comment\n{"name": "piped", "nodes": [{"id": "a", "handler": "noop"}]}'
    done = penstock("run", "-", "--json", cwd=tmp_path, stdin=text)
    assert json.loads(done.stdout)["workflow"] == "piped"
    done = penstock(
        "run",
        "-",
        "--json",
        cwd=tmp_path,
        stdin="name: piped\nnodes:\n  - {id: a, handler: noop}\n",
    )
    assert json.loads(done.stdout)["workflow"] == "piped"


def test_the_input_may_come_from_a_file(tmp_path):
    document(tmp_path, nodes({"id": "input", "handler": "input"}), **{"given.yaml": "who: Ada\n"})
    done = penstock("run", "flow.json", "--input", "@given.yaml", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["output"] == {"input": {"who": "Ada"}}


def test_mock_answers_calls_instead_of_making_them(tmp_path):
    call = {"id": "a", "handler": "http_request", "config": {"url": "https://nowhere.invalid/"}}
    document(tmp_path, nodes(call))
    done = penstock("run", "flow.json", "--mock", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["output"]["a"]["mock"] is True


def test_an_unknown_field_is_a_warning_and_with_strict_an_error(tmp_path):
    document(tmp_path, {"nmae": "x", **nodes({"id": "a", "handler": "noop"})})
    message = (
        'flow.json:1:2 nmae: the field "nmae" isn\'t known and has no effect; did you mean '
        "'name'? [unknown_field]\n"
    )
    done = penstock("run", "flow.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, f"warning: {message}")
    done = penstock("run", "flow.json", "--strict", cwd=tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (2, f"penstock run: {message}", "")


def test_a_large_output_is_cut_and_says_so(tmp_path):
    document(
        tmp_path,
        nodes(
            {"id": "a", "handler": "echo", "config": {"rows": list(range(100)), "text": "x" * 1000}}
        ),
    )
    done = penstock("run", "flow.json", cwd=tmp_path)
    assert "more lines; --json prints everything\n" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) < 500


def test_only_what_is_needed_is_imported(tmp_path):
    document(tmp_path, nodes({"id": "a", "handler": "noop"}))
    check = dedent("""
        import sys
        from penstock.cli import main
        code = main(["run", "flow.json"])
        heavy = {"aiohttp", "cel_expr_python", "jsonschema_rs", "rich", "yaml"}
        sys.exit(f"imported: {heavy & set(sys.modules)}" if heavy & set(sys.modules) else code)
    """)
    write(tmp_path, {"check.py": check})
    done = call([sys.executable, "check.py"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
