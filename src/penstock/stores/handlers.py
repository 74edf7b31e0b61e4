"""What handlers ask for, as stores keep it: workers say it when they start, and who compiles plans reads it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.errors import SettingsError
from penstock.stores.cold import Definitions

log = logging.getLogger("penstock.stores")

_decoder = msgspec.msgpack.Decoder(HandlerDefaults)


async def register_handlers(cold: Definitions, handlers: Mapping[str, HandlerDefaults]) -> None:
    """Write what the store doesn't have yet, or has otherwise: of two that differ the last one to start counts.

    Raises `SettingsError` for what nobody could read.
    """
    encoded(handlers)
    known = await cold.known_handlers()
    changed = {name: asked for name, asked in handlers.items() if known.get(name) != asked}
    if changed:
        await cold.remember_handlers(changed)


def encoded(handlers: Mapping[str, HandlerDefaults]) -> list[tuple[str, bytes]]:
    """Rows in the order of names: two that write at once then don't wait for each other's rows."""
    return [(name, _encode(name, handlers[name])) for name in sorted(handlers)]


def _encode(name: str, asked: HandlerDefaults) -> bytes:
    try:
        data = msgspec.msgpack.encode(asked)
        _decoder.decode(data)  # a handler's author may have given anything
    except (TypeError, ValueError, OverflowError) as error:
        raise SettingsError(
            f"the retry, timeout_seconds or queue of the handler {name!r} can't be: {error}"
        ) from None
    return data


def decoded(rows: Iterable[tuple[str, bytes]]) -> dict[str, HandlerDefaults]:
    return {name: _decode(name, data) for name, data in rows}


def _decode(name: str, data: bytes) -> HandlerDefaults:
    try:
        return _decoder.decode(data)
    except (
        msgspec.DecodeError
    ) as error:  # one bad row must not stop the workflows of all other handlers
        log.warning(
            "what the handler %r asks for can't be read, so it gets the usual: %s", name, error
        )
        return HandlerDefaults()
