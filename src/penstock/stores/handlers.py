"""Handler defaults in a store: workers write them when they start, and plans use them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.errors import SettingsError
from penstock.stores.cold import Definitions

log = logging.getLogger("penstock.stores")

_decoder = msgspec.msgpack.Decoder(HandlerDefaults)


async def register_handlers(
    definitions: Definitions, handlers: Mapping[str, HandlerDefaults]
) -> None:
    """Store the defaults of handlers that are new or have changed.

    If two workers differ, the last one to start counts. Raises `SettingsError` for defaults that
    can't be stored.
    """
    encoded(handlers)
    stored = await definitions.known_handlers()
    changed = {
        name: defaults for name, defaults in handlers.items() if stored.get(name) != defaults
    }
    if changed:
        await definitions.remember_handlers(changed)


def encoded(handlers: Mapping[str, HandlerDefaults]) -> list[tuple[str, bytes]]:
    """Rows in the order of names, so that two workers that write at once don't deadlock."""
    return [(name, _encode(name, handlers[name])) for name in sorted(handlers)]


def _encode(name: str, defaults: HandlerDefaults) -> bytes:
    try:
        data = msgspec.msgpack.encode(defaults)
        _decoder.decode(data)  # the values of a handler's author may have any type
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
    except msgspec.DecodeError as error:
        # one bad row must not stop the workflows of all other handlers
        log.warning(
            "the defaults of the handler %r can't be read, so it gets the usual ones: %s",
            name,
            error,
        )
        return HandlerDefaults()
