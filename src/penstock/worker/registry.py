"""The registry of handlers: `@handler` adds a function, a task names it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from typing import Any, Literal, TypeVar, overload

from penstock.definition.handler_configs import ConfigCheck, ConfigFault
from penstock.definition.model import BUILT_IN_HANDLERS, HANDLER_ALIASES, HandlerDefaults, Retry
from penstock.engine.reasons import ErrorCategory
from penstock.errors import SettingsError, Terminal
from penstock.spelling import near_miss
from penstock.worker.config_types import ConfigFields, config_type_faults, convert, is_config_type
from penstock.worker.context import Context
from penstock.worker.signature import USUAL, callee, hints_of, key_fields, read_signature

RunsIn = Literal["loop", "thread", "process"]
BUILT_IN_MODULES = "penstock.worker.handlers."
INPUTLESS = frozenset({"noop", "sleep", "fail", "echo", "call_external_service", "llm_service"})
"""Built-in handlers that take a context and never look at the outputs of their node's parents."""
OPTIONS = ("name", "retry", "timeout_seconds", "queue", "runs_in", "registry")
NEAR_MISSES = {
    "timeout": "timeout_seconds",
    "retries": "retry",
    "max_retries": "retry",
    "max_attempts": "retry",
    "retry_policy": "retry",
    "process": "runs_in",
}
"""Other names for options of a handler."""
Function = TypeVar("Function", bound=Callable[..., Any])


class Handler:
    """A handler: its function, and how it wants to be called."""

    def __init__(  # noqa: PLR0913 -- what `@handler` takes
        self,
        name: str,
        function: Callable[..., Any],
        *,
        retry: Retry | None = None,
        timeout_seconds: float | None = None,
        queue: str | None = None,
        runs_in: RunsIn | None = None,
    ) -> None:
        self.name = name
        self.function = function
        self.defaults = HandlerDefaults(retry, timeout_seconds, queue)
        self._signature = read_signature(name, function)
        is_async = inspect.iscoroutinefunction(callee(function))
        if runs_in == "process" and is_async:
            raise SettingsError(
                f"the handler {name!r} is async, "
                "and async handlers run on the loop, not in a process"
            )
        self.runs_in: RunsIn = "loop" if is_async else runs_in or "thread"
        self.checked_as: Handler = self
        """The handler whose config its nodes have: another one if this stands in for that."""

    @property
    def needs_inputs(self) -> bool:
        """Whether the handler may look at its parents' outputs.

        Then they are fetched, however large they are.
        """
        is_blind = self.is_built_in and self.name in INPUTLESS
        return self._signature.takes_context and not is_blind

    @property
    def is_built_in(self) -> bool:
        return str(getattr(self.function, "__module__", "")).startswith(BUILT_IN_MODULES)

    @functools.cached_property
    def config_keys(self) -> ConfigFields | None:
        """The keys of the config that are parameters of the function."""
        keys = self._signature.keys
        if keys is None:
            return None
        owner = f"{getattr(self.function, '__name__', self.name)}()"
        fields = key_fields(self.function, keys)
        return ConfigFields(owner, fields, "parameter", self._signature.is_open)

    @functools.cached_property
    def config_type(self) -> Any:
        """The type that the whole config is read into; None for plain dictionaries."""
        return _config_type(self.function) if self._signature.takes_config else None

    def config_faults(self, config: Mapping[str, Any]) -> Iterable[ConfigFault]:
        """What of a config, as it stands in a document, doesn't fit this handler."""
        checked = self.checked_as
        if checked.config_keys is not None:
            return checked.config_keys.faults(config)
        wanted = checked.config_type
        return () if wanted is None else config_type_faults(wanted, config)

    def prepare(self, config: Any, context: Context) -> Callable[[], Any]:
        """A call of the function, with the config as it wants it. Raises `Terminal`."""
        signature = self._signature
        named: dict[str, Any] = {}
        if self.config_keys is not None:
            try:
                named = self.config_keys.converted(config, lenient=context.lenient_config)
            except ValueError as error:
                raise Terminal(str(error), category=ErrorCategory.CONFIG) from None
        elif self.config_type is not None:
            config = _convert(config, self.config_type)

        if signature is USUAL:  # most handlers: it must cost nothing
            return functools.partial(self.function, config, context)
        values = {"config": config, "context": context}
        named.update((name, values[what]) for name, what in signature.by_name)
        by_position = [values[what] for what in signature.by_position]
        return functools.partial(self.function, *by_position, **named)


def _config_type(function: Callable[..., Any]) -> Any:
    """The type that the whole config is read into; None for plain dictionaries."""
    hints = hints_of(function)
    for name in inspect.signature(function).parameters:
        hint = hints.get(name)
        if hint is not Context and is_config_type(hint):
            return hint
    return None


def _convert(config: Any, wanted: Any) -> Any:
    try:
        return convert(config, wanted)
    except ValueError as error:
        raise Terminal(
            f"the config doesn't fit {wanted.__name__}: {error}", category=ErrorCategory.CONFIG
        ) from None


class Registry:
    """Handlers by name, for an engine that shouldn't use those of the whole process."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        self._handlers: dict[str, Handler] = {handler.name: handler for handler in handlers}

    def add(self, handler: Handler) -> None:
        """Register a handler under its name.

        Raises `SettingsError` if another function has the name. The same function of a module that
        is imported again, or of a cell that is run again, takes the place of the first.
        """
        if handler.name in BUILT_IN_HANDLERS or handler.name in HANDLER_ALIASES:
            raise SettingsError(
                f"{handler.name!r} is the name of a built-in handler; choose another"
            )
        earlier = self._handlers.get(handler.name)
        if earlier is not None and not _is_same(earlier.function, handler.function):
            raise SettingsError(
                f"the handler {handler.name!r} is {_location(earlier.function)} already, and"
                f" {_location(handler.function)} can't take its name; choose another"
            )
        self.put(handler)

    def put(self, handler: Handler) -> None:
        """Register a handler as `add` does, also over a built-in one."""
        self._handlers[handler.name] = handler

    def get(self, name: str) -> Handler | None:
        """The handler of this name, or None."""
        return self._handlers.get(name)

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())

    @property
    def names(self) -> KeysView[str]:
        """Names of all handlers, also of those that are added later."""
        return self._handlers.keys()

    def defaults(self) -> dict[str, HandlerDefaults]:
        """The retries, timeouts and queues that handlers declare, by handler."""
        return {handler.name: handler.defaults for handler in self}

    def config_checks(self) -> dict[str, ConfigCheck]:
        """How configs are checked, except of built-in handlers."""
        return {
            handler.name: handler.config_faults
            for handler in self
            if not handler.checked_as.is_built_in
        }


registered = Registry()
"""What `@handler` fills: the handlers of the modules that this process has imported."""


def _is_same(earlier: Callable[..., Any], function: Callable[..., Any]) -> bool:
    """Whether two functions stand at the same place of the same module or file."""
    if earlier is function:
        return True
    return _identities(earlier) & _identities(function) != set()


def _identities(function: Callable[..., Any]) -> set[tuple[str, str]]:
    name = getattr(function, "__qualname__", "")
    if not name:
        return set()
    code = getattr(inspect.unwrap(function), "__code__", None)
    places = {getattr(function, "__module__", ""), getattr(code, "co_filename", "")}
    return {(place, name) for place in places if place}


def _location(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", repr(function))
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return f"{getattr(function, '__module__', '')}.{name}"
    return f"{name} ({code.co_filename}:{code.co_firstlineno})"


@overload
def handler(function: Function, /) -> Function: ...
@overload
def handler(
    name: str | None = None,
    *,
    retry: Retry | None = None,
    timeout_seconds: float | None = None,
    queue: str | None = None,
    runs_in: RunsIn | None = None,
    registry: Registry | None = None,
) -> Callable[[Function], Function]: ...
def handler(  # noqa: PLR0913 -- the options of a handler
    name: Any = None,
    *,
    retry: Retry | None = None,
    timeout_seconds: float | None = None,
    queue: str | None = None,
    runs_in: RunsIn | None = None,
    registry: Registry | None = None,
    **unknown: Any,
) -> Any:
    """Make a function a handler.

    It takes `(config, ctx)`, or fewer; or the keys of its config by their names, with their types:
    `(url: str, width: int = 100)`. It returns any JSON, or raises. Without a name, as in
    `@penstock.handler`, the handler has the function's.

    `runs_in="process"` gives it a process of its own: for heavy computation, and for code that may
    crash.
    """
    _refuse_unknown(unknown)

    def register(function: Function) -> Function:
        handler_name = name if isinstance(name, str) else _name_of(function)
        new = Handler(
            handler_name,
            function,
            retry=retry,
            timeout_seconds=timeout_seconds,
            queue=queue,
            runs_in=runs_in,
        )
        (registry or registered).add(new)
        function.handler_name = handler_name  # type: ignore[attr-defined]
        return function

    return register(name) if callable(name) else register


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():  # a lambda, or an object
        raise SettingsError(f"{function!r} has no name of its own; name it: handler('name')")
    return str(name)


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    for option in options:
        meant = near_miss(option, OPTIONS, NEAR_MISSES)
        hint = f"; did you mean {meant}=…?" if meant else f"; it has {', '.join(OPTIONS)}"
        raise TypeError(f"handler() has no option {option!r}{hint}")
