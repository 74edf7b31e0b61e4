"""The size of tests that could go on for as long as one likes.

A part in `make test`, all of it in `make explore`.

    @explored
    @settings(max_examples=size(short=150, full=600))
    def test_...

Tests of faults have their own measure: the fixture `fault` and `make faults`.
"""

from __future__ import annotations

import os

import pytest

IS_FULL = os.environ.get("TEST_SIZE") == "full"
"""A variable and not an option: examples of Hypothesis are counted while a module is imported."""

explored = pytest.mark.explore
"""Marks a test that does more in `make explore`, which runs only these."""


def size(short: int, full: int) -> int:
    return full if IS_FULL else short
