"""Processes that can't be left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from penstock.errors import PenstockError
from penstock.local import Process
from penstock.local.ports import free_port
from penstock.local.process import plain_line
from tests.waiting import until_now

STUBBORN = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); signal.pause()"
)
PARENT = """
import os, signal, sys
from pathlib import Path
from penstock.local import Process
print(Process(["sleep", "1000"], Path(sys.argv[1])).pid, flush=True)
signal.pause()
"""


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # also between two looks at it
        return True


def test_it_stops_when_asked(tmp_path):
    process = Process(["sleep", "1000"], tmp_path / "log")
    assert process.code is None
    process.stop()
    assert process.code == 128 + signal.SIGTERM
    assert gone(process.pid)
    process.stop()  # nothing is left to stop


def test_one_that_does_not_listen_is_killed(tmp_path):
    process = Process([sys.executable, "-c", STUBBORN], tmp_path / "log", stop_seconds=0.1)
    until_now(lambda: "ready" in (tmp_path / "log").read_text())
    process.stop()
    assert process.code == 128 + signal.SIGKILL


def test_its_end_and_its_last_words_are_known(tmp_path):
    process = Process(
        [sys.executable, "-c", "import sys; print('no disk'); sys.exit(3)"], tmp_path / "log"
    )
    assert until_now(lambda: process.code) == 3
    assert process.last_lines() == "no disk"


RECORD = (
    '{"timestamp":"2026-11-18T12:00:00.000Z","level":"error","logger":"penstock",'
    '"event":"the store is gone","exception":"Traceback …\\n  File …\\nOSError: no disk"}'
)


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        (RECORD, "error: the store is gone (OSError: no disk)"),
        ('{"event":"stopped"}', "stopped"),
        ('{"level":"info","event":"it has begun","worker_id":"w"}', "info: it has begun"),
        ('{"some": "output"}', '{"some": "output"}'),
        ("{not JSON", "{not JSON"),
        ("  Segmentation fault\n", "Segmentation fault"),
    ],
)
def test_a_record_in_a_log_is_shown_as_what_it_says(line, plain):
    assert plain_line(line) == plain


def test_a_program_that_is_not_there_is_told(tmp_path):
    with pytest.raises(PenstockError, match="No such file"):
        Process([tmp_path / "missing"], tmp_path / "log")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_the_process_that_started_it(tmp_path, number):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path / "log"], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.send_signal(number)
        parent.wait()
    until_now(lambda: gone(pid))


def test_it_does_not_hear_the_terminals_interrupt(tmp_path):
    process = Process(["sleep", "1000"], tmp_path / "log")
    assert os.getsid(process.pid) != os.getsid(0)
    process.stop()


def test_a_free_port_can_be_had_many_times():
    assert len({free_port() for _ in range(20)}) > 1


def test_the_leash_is_a_script_that_needs_nothing():
    leash = Path(sys.modules["penstock.local.process"].__file__ or "").with_name("leash.py")
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            leash,
            '{"command": ["/nonexistent"], "user": null, "folder": null}',
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 126
    assert "/nonexistent" in done.stderr
