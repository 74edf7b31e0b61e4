"""A slope is found in spite of noise, and noise is no slope."""

from __future__ import annotations

import random

import pytest

from tests.faults.samples import Samples, slope


def _trend(*values: float) -> bool:
    samples = Samples({"MB": 10})
    for number, value in enumerate(values):
        samples.take(30.0 * number, {"MB of a worker": value})
    (trend,) = samples.trends()
    return trend.is_flat


def test_the_slope_of_a_line_is_the_line_s() -> None:
    assert slope([(at, 5 + 0.25 * at) for at in range(10)]) == pytest.approx(0.25)


def test_a_leak_is_found_among_noise() -> None:
    choose = random.Random(1)
    assert not _trend(*[100 + choose.uniform(-8, 8) + 0.2 * number for number in range(100)])


def test_noise_and_a_warm_up_are_no_leak() -> None:
    choose = random.Random(1)
    warm_up = [float(4 * number) for number in range(25)]
    assert _trend(*warm_up, *[100 + choose.uniform(-8, 8) for _ in range(75)])


def test_what_was_measured_too_seldom_says_nothing() -> None:
    samples = Samples({"MB": 10})
    for number in range(5):
        samples.take(600.0 + number, {"MB of a worker": 100.0 * number})
    assert samples.trends() == []
