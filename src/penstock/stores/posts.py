"""Posts: signals to whoever waits for a correlation, and how they meet open waits.

A post may come before the node that waits for it, or after. Both are written down, and whoever
writes looks at the other list in the same step, so whichever comes second finds the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from penstock.definition.waits import SignalConfig, signal_config
from penstock.engine.events import SignalReceived
from penstock.engine.waiting import fits
from penstock.stores.waits import OpenWait

EXPIRED_AT_ONCE = 100
"""Expired posts that one new post deletes."""


class Post(msgspec.Struct, array_like=True):
    """A signal to whoever waits for its name and correlation."""

    name: str
    correlation: str
    payload: bytes
    """JSON text."""
    sender: str
    at: float
    expires_at: float
    """It is kept until then for nodes that begin to wait later."""
    to_all: bool = False
    """Every node that waits gets it; else the first."""


class Delivered(NamedTuple):
    """The outcome of a post: the signals that it became, which are stored and not delivered yet."""

    signals: list[SignalReceived]
    is_kept: bool
    """It also waits for nodes that begin to wait later."""


_waits = msgspec.msgpack.Decoder(OpenWait)
_posts = msgspec.msgpack.Decoder(Post)


def awaited(wait: OpenWait) -> SignalConfig:
    return signal_config(msgspec.json.decode(wait.config))


def meets(post: Post, wait: OpenWait) -> bool:
    """Whether a post is for a node that waits."""
    if wait.kind != "signal" or wait.correlation != post.correlation:
        return False
    return fits(awaited(wait), signal_of(post, wait.execution_id, 0))


def is_satisfied(wait: OpenWait) -> bool:
    """Whether one signal is all that the node waits for: then its wait is over with it."""
    return not awaited(wait).count


def delivery_key(wait: OpenWait, post_id: int) -> str:
    """The idempotency key of a signal that a post becomes: a node that needs one gets one.

    After a loss of Redis a node may be decided again, and then wait for another correlation.
    """
    if is_satisfied(wait):
        return f"post to {wait.attempt}:{wait.node_id}:{wait.correlation}"
    return f"post {post_id}"


def signal_of(post: Post, execution_id: str, number: int) -> SignalReceived:
    return SignalReceived(
        execution_id, number, post.name, post.payload, post.correlation, post.sender, post.at
    )


def posts_for(wait: OpenWait, posts: Iterable[tuple[int, Post]]) -> list[tuple[int, Post]]:
    """The posts that a node which begins to wait gets, of those with its correlation."""
    wanted = max(awaited(wait).count, 1)
    meeting = [(post_id, post) for post_id, post in posts if meets(post, wait)]
    return meeting[:wanted]


def waits_in(rows: Iterable[tuple[int, bytes]], post: Post) -> Iterator[tuple[int, OpenWait]]:
    """Waits that a post is for, of stored ones: each with its execution's number."""
    for n, data in rows:
        wait = _waits.decode(data)
        if meets(post, wait):
            yield n, wait


def posts_in(rows: Iterable[tuple[int, bytes]], wait: OpenWait) -> list[tuple[int, Post]]:
    """As `posts_for`, of stored posts."""
    return posts_for(wait, [(post_id, _posts.decode(data)) for post_id, data in rows])
