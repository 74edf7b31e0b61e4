"""Redis's error replies, and broken connections, as exceptions."""

from __future__ import annotations

from penstock.errors import Fenced, StoreError, StoreUnavailable

AWAY = (
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "OOM",
    "MISCONF",
    "NOREPLICAS",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "MOVED",
    "ASK",
    "UNBLOCKED",
)
"""Errors of a server that can't serve anybody now; all other errors are about the call."""


class Refused(StoreError):
    """Redis answered with an error; `code` is its first word."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Redis refuses: {text}")
        self.code = text.partition(" ")[0]


class Broken(StoreUnavailable):
    """The connection ended before the answer came: the call may have been carried out or not."""


class NotNow(StoreUnavailable):
    """Redis answers, but can't do it at the moment; `text` is its reply."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Redis can't now: {text}")
        self.code = text.partition(" ")[0]
        self.text = text


def error_of(text: str) -> StoreError:
    """The exception for an error reply."""
    code = text.partition(" ")[0]
    if code == "FENCED":
        return Fenced(text.partition(" ")[2])
    if code in AWAY:
        return NotNow(text)
    return Refused(text)
