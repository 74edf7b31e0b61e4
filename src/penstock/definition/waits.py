"""Nodes that wait: what their configs mean, and what is wrong with literal ones.

The engine reads a config when the node begins to wait, with everything filled in. The same
functions judge literal values at submission.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

import msgspec

from penstock.definition.fields import (
    CONTROL_CHARACTER,
    SECONDS_MAX,
    excerpt_of,
    has_reference,
)
from penstock.definition.handler_configs import (
    COMMENT,
    ON_EXPIRE,
    ON_TIMEOUT,
    ConfigFault,
)
from penstock.definition.moments import BadMoment, parse_moment
from penstock.definition.schema import compile_schema

OnTimeout = Literal["fail", "continue"]
SIGNAL_NAME_CHARACTERS_MAX = 128
CORRELATION_CHARACTERS_MAX = 512
SIGNAL_COUNT_MAX = 1000
SIGNAL_NAMES_MAX = 50
OWN_MARK = "~"
APPROVERS_MAX = 100


IGNORED = "ignored_field"
"""The code of a fault that is only a warning."""


class BadWait(ValueError):
    """A config that can't be waited for. Its text is shown to the user."""


class SignalConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The config of a `signal` node."""

    names: tuple[str, ...]
    correlation: str | None = None
    schema: Any = None
    count: int = 0
    """How many signals are given as a list; 0: one, given alone."""
    timeout_seconds: float | None = None
    on_timeout: OnTimeout = "fail"


class ApprovalConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The config of an `approval` node."""

    title: str
    text: Any = None
    form: Any = None
    scope: str = "approve"
    keys: tuple[str, ...] = ()
    """Ids of the API keys that may decide; empty: any with the scope."""
    not_starter: bool = False
    needed: int = 1
    comment: str = "never"
    expires_seconds: float | None = None
    on_expire: str = "reject"
    on_reject: str = "continue"


def moment_of(config: Mapping[str, Any], now: float) -> float:
    """When a `wait` is over. Raises `BadWait`."""
    seconds = config.get("seconds")
    until = config.get("until")
    if (seconds is None) == (until is None):
        raise BadWait('wait needs either "seconds" or "until" in its config')
    if seconds is not None:
        return now + _seconds("seconds", seconds)
    try:
        at = parse_moment(until, config.get("timezone"))
    except BadMoment as error:
        raise BadWait(str(error)) from None
    if at > now + SECONDS_MAX:
        raise BadWait(f'"until" {excerpt_of(until)} is more than 10 years away')
    return at


def _seconds(name: str, value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= SECONDS_MAX:
        raise BadWait(
            f'"{name}" must be a number from 0 to {SECONDS_MAX:,} (10 years),'
            f" not {excerpt_of(value)}"
        )
    return float(value)


def decision_name(node_id: str, attempt: int) -> str:
    """The name of the signals that are decisions about a node. Nobody else can send them."""
    return f"{OWN_MARK}decision:{attempt}:{node_id}"


def check_signal_name(name: Any) -> None:
    """Raises `BadWait` unless a signal can have this name."""
    if isinstance(name, str) and name.startswith(OWN_MARK):
        raise BadWait(f"names that begin with {OWN_MARK} are Penstock's own, such as {name[:40]!r}")
    if (
        not isinstance(name, str)
        or not 0 < len(name) <= SIGNAL_NAME_CHARACTERS_MAX
        or CONTROL_CHARACTER.search(name)
        or name != name.strip()
    ):
        raise BadWait(
            f"a signal's name is text of 1 to {SIGNAL_NAME_CHARACTERS_MAX} characters"
            f" without line breaks, not {excerpt_of(name)}"
        )


def signal_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that a `signal` node waits for. Raises `BadWait`."""
    name = config.get("name")
    names = config.get("names")
    if (name is None) == (names is None):
        raise BadWait('signal needs either "name" or "names" in its config')
    if name is not None:
        names = [name]
    if not isinstance(names, list) or not 0 < len(names) <= SIGNAL_NAMES_MAX:
        raise BadWait(f'"names" must be a list of 1 to {SIGNAL_NAMES_MAX} names')
    for item in names:
        check_signal_name(item)
    return tuple(dict.fromkeys(names))


def signal_config(config: Mapping[str, Any]) -> SignalConfig:
    """The config of a `signal` node, checked. Raises `BadWait`."""
    names = signal_names(config)
    correlation = _correlation(config.get("correlation"))
    count = config.get("count")
    if count is not None and not _is_count(count):
        raise BadWait(f'"count" must be from 1 to {SIGNAL_COUNT_MAX}, not {excerpt_of(count)}')
    timeout = config.get("timeout_seconds")
    on_timeout: Any = config.get("on_timeout") or "fail"
    if on_timeout not in ("fail", "continue"):
        raise BadWait(f'"on_timeout" must be fail or continue, not {excerpt_of(on_timeout)}')
    return SignalConfig(
        names=names,
        correlation=correlation,
        schema=config.get("schema"),
        count=0 if count is None else count,
        timeout_seconds=None if timeout is None else _seconds("timeout_seconds", timeout),
        on_timeout=on_timeout,
    )


def check_schema(name: str, schema: Any) -> None:
    """Raises `BadWait` unless values can be checked against this schema."""
    if schema is None:
        return
    try:
        compile_schema(schema)
    except ValueError as error:
        raise BadWait(f'"{name}" can\'t be used: {error}') from None


def _correlation(value: Any) -> str | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return msgspec.json.encode(value).decode()
    check_correlation(value)
    return None if value is None else str(value)


def check_correlation(correlation: Any) -> None:
    """Raises `BadWait` unless a signal can have this correlation, or has none."""
    if correlation is None:
        return
    if not isinstance(correlation, str) or not 0 < len(correlation) <= CORRELATION_CHARACTERS_MAX:
        raise BadWait(
            f'"correlation" must be text of 1 to {CORRELATION_CHARACTERS_MAX} characters,'
            f" not {excerpt_of(correlation)}"
        )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= SIGNAL_COUNT_MAX


def approval_config(config: Mapping[str, Any]) -> ApprovalConfig:
    """The config of an `approval` node, checked. Raises `BadWait`."""
    title = config.get("title")
    if not isinstance(title, str) or not title:
        raise BadWait(f'"title" must be text that isn\'t empty, not {excerpt_of(title)}')
    form = config.get("form")
    if form is not None and not isinstance(form, dict):
        raise BadWait(f'"form" must be a JSON Schema, not {excerpt_of(form)}')
    approvers = config.get("approvers")
    approvers = {} if approvers is None else approvers
    fault = _approvers_fault(approvers)
    if fault is not None:
        raise BadWait(fault)
    needed = config.get("needed")
    if needed is not None and not _is_count(needed):
        raise BadWait(f'"needed" must be from 1 to {SIGNAL_COUNT_MAX}, not {excerpt_of(needed)}')
    expires = config.get("expires_seconds")
    return ApprovalConfig(
        title=title,
        text=config.get("text"),
        form=form,
        scope=approvers.get("scope") or "approve",
        keys=tuple(approvers.get("keys") or ()),
        not_starter=bool(approvers.get("not_starter")),
        needed=needed or 1,
        comment=_choice(config, "comment", COMMENT, "never"),
        expires_seconds=None if expires is None else _seconds("expires_seconds", expires),
        on_expire=_choice(config, "on_expire", ON_EXPIRE, "reject"),
        on_reject=_choice(config, "on_reject", ON_TIMEOUT, "continue"),
    )


def _choice(config: Mapping[str, Any], name: str, choices: Collection[str], default: str) -> str:
    value: Any = config.get(name)
    if value is None:
        return default
    if value not in choices:
        raise BadWait(f'"{name}" must be one of {", ".join(choices)}, not {excerpt_of(value)}')
    return str(value)


def _approvers_fault(approvers: Any) -> str | None:
    if not isinstance(approvers, dict):
        return (
            '"approvers" must be an object, such as {"keys": ["key_7"]},'
            f" not {excerpt_of(approvers)}"
        )
    for name in approvers:
        if name not in ("scope", "keys", "not_starter"):
            return f'"approvers" has no {name[:80]!r}; it has scope, keys and not_starter'
    scope = approvers.get("scope")
    if scope not in (None, "approve", "operate", "admin"):
        return f'"approvers.scope" must be approve, operate or admin, not {excerpt_of(scope)}'
    keys = approvers.get("keys")
    are_texts = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
    if keys is not None and not (are_texts and 0 < len(keys) <= APPROVERS_MAX):
        return (
            f'"approvers.keys" must be a list of 1 to {APPROVERS_MAX} ids of API keys;'
            " without it, every key with the scope may decide"
        )
    if not isinstance(approvers.get("not_starter"), (bool, type(None))):
        return '"approvers.not_starter" must be true or false'
    return None


def wait_faults(handler: str, config: Mapping[str, Any]) -> Iterator[ConfigFault]:
    """What is wrong with the literal values of a node that waits, beside its keys."""
    if handler == "wait":
        yield from _moment_faults(config)
    elif handler == "signal":
        yield from _signal_faults(config)
    elif handler == "approval":
        yield from _approval_faults(config)


def _moment_faults(config: Mapping[str, Any]) -> Iterator[ConfigFault]:
    seconds = config.get("seconds")
    until = config.get("until")
    timezone = config.get("timezone")
    if isinstance(seconds, (int, float)) and seconds > SECONDS_MAX:
        message = f'"seconds" must be at most {SECONDS_MAX:,} (10 years), not {excerpt_of(seconds)}'
        yield ConfigFault("bad_config", ("seconds",), message)
    if until is None or has_reference(until) or has_reference(timezone):
        return
    try:
        parse_moment(until, timezone)
    except BadMoment as error:
        yield ConfigFault("bad_until", (error.key,), str(error))


def _signal_faults(config: Mapping[str, Any]) -> Iterator[ConfigFault]:
    name = config.get("name")
    names = config.get("names")
    if name is not None and names is None:
        names = [name]
    if isinstance(names, list) and not any(map(has_reference, names)):
        try:
            signal_names({"names": names})
        except BadWait as error:
            yield ConfigFault("bad_signal_name", ("names" if name is None else "name",), str(error))
    count = config.get("count")
    if isinstance(count, (int, float)) and not _is_count(count):
        message = f'"count" must be from 1 to {SIGNAL_COUNT_MAX}, not {excerpt_of(count)}'
        yield ConfigFault("bad_config", ("count",), message)
    yield from _schema_faults("schema", config.get("schema"))
    if config.get("on_timeout") is not None and config.get("timeout_seconds") is None:
        yield _without_limit("on_timeout", "timeout_seconds")


def _without_limit(name: str, limit: str) -> ConfigFault:
    message = f'"{name}" has no effect without "{limit}"; add that, or remove it'
    return ConfigFault(IGNORED, (name,), message)


def _schema_faults(name: str, schema: Any) -> Iterator[ConfigFault]:
    if schema is None or "{{" in str(schema):
        return
    try:
        compile_schema(schema)
    except ValueError as error:
        yield ConfigFault("bad_schema", (name,), f'"{name}" can\'t be used: {error}')


def _approval_faults(config: Mapping[str, Any]) -> Iterator[ConfigFault]:
    approvers = config.get("approvers")
    if isinstance(approvers, dict) and not any(map(has_reference, approvers.values())):
        fault = _approvers_fault(approvers)
        if fault is not None:
            yield ConfigFault("bad_config", ("approvers",), fault)
    needed = config.get("needed")
    if isinstance(needed, (int, float)) and not _is_count(needed):
        message = f'"needed" must be from 1 to {SIGNAL_COUNT_MAX}, not {excerpt_of(needed)}'
        yield ConfigFault("bad_config", ("needed",), message)
    else:
        yield from _faults_of_number(needed, approvers)
    form = config.get("form")
    if isinstance(form, dict):
        yield from _schema_faults("form", form)
    if config.get("on_expire") is not None and config.get("expires_seconds") is None:
        yield _without_limit("on_expire", "expires_seconds")


def _faults_of_number(needed: Any, approvers: Any) -> Iterator[ConfigFault]:
    """More approvals than there are people who may give one."""
    keys = approvers.get("keys") if isinstance(approvers, dict) else None
    if isinstance(keys, list) and isinstance(needed, (int, float)) and needed > len(set(keys)) > 0:
        message = (
            f'"needed" is {needed}, and "approvers.keys" names {len(set(keys))} who may approve;'
            " one person counts once"
        )
        yield ConfigFault("bad_config", ("needed",), message)
