"""Which failures are retried, and how long to wait before the next attempt.

The jitter is seeded, so that a decision made again is the same one.
"""

from __future__ import annotations

from zlib import crc32

from penstock.definition.error_patterns import matches, matches_status
from penstock.definition.model import Retry
from penstock.engine.events import TaskError
from penstock.engine.reasons import ErrorCategory

LOSSES = (ErrorCategory.LOST, ErrorCategory.INTERRUPTED)
"""Of the worker, not of the node: `on` doesn't speak of them, only `not_on` may."""


def is_retried(retry: Retry, error: TaskError, *, retryable: bool) -> bool:
    """Whether an attempt that failed so may be followed by another.

    `retryable` is what the handler says. A status that is named in `on` is retried even if not.
    """
    if matches(retry.not_on, error):
        return False
    if not retryable:
        return matches_status(retry.on, error)
    return not retry.on or error.category in LOSSES or matches(retry.on, error)


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
