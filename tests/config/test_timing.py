"""The times in which crashes are noticed and repaired.

Their defaults, and which of them don't go together.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from penstock.config import Settings, Timing
from penstock.errors import SettingsError
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.runtime.timing import EngineTiming
from penstock.service.timing import ServiceTiming
from penstock.worker.timing import WorkerTiming

DEFAULTS = {
    "heartbeat_seconds": 5.0,
    "worker_dead_seconds": 15.0,
    "reaper_seconds": 1.0,
    "lease_seconds": 5.0,
    "reconcile_seconds": 10.0,
    "stale_seconds": 10.0,
    "checkpoint_seconds": 10.0,
    "archive_seconds": 1.0,
    "retention_check_seconds": 3600.0,
}
CHOSEN = {
    "heartbeat_seconds": 0.5,
    "worker_dead_seconds": 3.0,
    "reaper_seconds": 0.25,
    "lease_seconds": 2.0,
    "reconcile_seconds": 4.0,
    "stale_seconds": 3.5,
    "checkpoint_seconds": 6.0,
    "archive_seconds": 0.5,
    "retention_check_seconds": 60.0,
}
"""None of them is the default."""
ROOT = Path(__file__).parents[2]


def load(tmp_path: Path, **times: float | str) -> Settings:
    environ = {f"PENSTOCK_{name.upper()}": str(seconds) for name, seconds in times.items()}
    return Settings.load({}, environ, tmp_path)


def test_these_are_the_defaults(tmp_path: Path) -> None:
    assert asdict(load(tmp_path).timing) == DEFAULTS
    assert asdict(Timing()) == DEFAULTS


def test_parts_that_are_given_no_times_have_the_defaults() -> None:
    assert EngineTiming() == EngineTiming.of(Settings())


def test_each_layer_has_the_times_that_are_set(tmp_path: Path) -> None:
    settings = load(tmp_path, **CHOSEN, no_handler_seconds=7.0)
    timing = EngineTiming.of(settings)
    layers = {**asdict(timing.orchestrator), **asdict(timing.worker), **asdict(timing.service)}
    for name, seconds in CHOSEN.items():
        if name != "retention_check_seconds":  # of the runtime itself
            assert layers[name] == seconds
    assert timing.orchestrator.no_handler_seconds == 7.0
    assert timing.orchestrator.worker_dead_seconds == timing.service.worker_dead_seconds


@pytest.mark.parametrize("layer", [OrchestratorTiming, ServiceTiming, WorkerTiming])
def test_a_layer_with_a_setting_of_the_operators_has_its_default(layer: Any) -> None:
    assert asdict(layer.of(Settings())) == asdict(layer())
    assert {*DEFAULTS} & asdict(layer()).keys()


def test_each_of_them_is_a_setting_that_is_shown(tmp_path: Path) -> None:
    settings = load(tmp_path, **CHOSEN)
    assert asdict(settings.timing) == CHOSEN
    assert settings.describe().items() >= CHOSEN.items()


@pytest.mark.parametrize("page", ["settings.md", "deploying.md"])
def test_each_of_them_is_documented_with_its_default(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    for name, seconds in DEFAULTS.items():
        assert f"| `PENSTOCK_{name.upper()}` | `{seconds:g}` |" in text


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("text", ["0", "-1", "0.01", "nan", "inf", "1e9", "soon"])
def test_what_is_no_time_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, **{name: text})
    expected = (
        f"PENSTOCK_{name.upper()} is '{text}'; allowed: a number of seconds from 0.05 to 86400"
    )
    assert str(raised.value) == expected


REFUSED = [
    ({"worker_dead_seconds": 11.9}, "worker_dead_seconds is 11.9, and must be at least 12"),
    ({"heartbeat_seconds": 7.0}, "worker_dead_seconds is 15, and must be at least 16"),
    ({"reaper_seconds": 15.0}, "worker_dead_seconds is 15, and must be at least 40"),
    ({"lease_seconds": 0.9}, "lease_seconds is 0.9, and must be at least 1"),
    ({"stale_seconds": 11.0}, "stale_seconds is 11, and may be at most reconcile_seconds (10)"),
    ({"reconcile_seconds": 9.0}, "stale_seconds is 10, and may be at most reconcile_seconds (9)"),
    (
        {"archive_seconds": 11.0},
        "archive_seconds is 11, and may be at most checkpoint_seconds (10)",
    ),
    (
        {"checkpoint_seconds": 0.5},
        "archive_seconds is 1, and may be at most checkpoint_seconds (0.5)",
    ),
]


@pytest.mark.parametrize(("times", "text"), REFUSED)
def test_times_that_do_not_go_together_are_refused_with_what_to_do(
    tmp_path: Path, times: dict[str, float], text: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, **times)
    assert str(raised.value).startswith(text)
    assert "raise it" in str(raised.value) or "lower it" in str(raised.value)


@pytest.mark.parametrize(("times", "text"), REFUSED)
def test_settings_made_in_python_are_refused_when_something_is_started_with_them(
    times: dict[str, float], text: str
) -> None:
    settings = replace(Settings(), **times)  # type: ignore[arg-type]
    with pytest.raises(SettingsError) as raised:
        _ = settings.timing
    assert str(raised.value).startswith(text)


def test_times_that_just_go_together_are_accepted(tmp_path: Path) -> None:
    assert load(tmp_path, worker_dead_seconds=12).timing.worker_dead_seconds == 12.0
    assert load(tmp_path, lease_seconds=1, archive_seconds=10).timing.lease_seconds == 1.0
