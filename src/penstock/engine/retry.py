"""How long to wait before the next attempt.

The jitter is seeded, so that a decision made again is the same one.
"""

from __future__ import annotations

from zlib import crc32

from penstock.definition.model import Retry


def delay_seconds(
    retry: Retry, failed_attempt: int, seed: str, *, retry_after: float | None = None
) -> float:
    """The wait after `failed_attempt` (1 is the first).

    What the service asked for (`Retry-After`) is obeyed.
    """
    if retry_after is not None:
        return max(0.0, retry_after)
    try:
        grown = retry.initial_delay_seconds * retry.multiplier ** (failed_attempt - 1)
    except OverflowError:  # long past any largest delay
        grown = retry.max_delay_seconds if retry.initial_delay_seconds else 0.0
    jitter = retry.jitter_seconds * _fraction(f"{seed}:{failed_attempt}")
    return min(grown, retry.max_delay_seconds) + jitter


def _fraction(seed: str) -> float:
    return crc32(seed.encode()) / 2**32
