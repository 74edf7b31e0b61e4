"""The registry of handlers: `@handler("name")` adds a function, a task names it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from typing import Any, Literal, TypeVar

import msgspec

from penstock.definition.handler_configs import ConfigCheck, ConfigFault
from penstock.definition.model import BUILT_IN_HANDLERS, HANDLER_ALIASES, HandlerDefaults, Retry
from penstock.engine.reasons import ErrorCategory
from penstock.errors import SettingsError, Terminal
from penstock.worker.config_types import config_type_faults, is_config_type

RunsIn = Literal["loop", "thread", "process"]
BUILT_IN_MODULES = "penstock.worker.handlers."
INPUTLESS = frozenset({"noop", "sleep", "fail", "echo", "call_external_service", "llm_service"})
"""Built-in handlers that take a context and never look at the outputs of their node's parents."""
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
        call = function if inspect.isroutine(function) else type(function).__call__
        is_async = inspect.iscoroutinefunction(call)
        if runs_in == "process" and is_async:
            raise SettingsError(
                f"the handler {name!r} is async, "
                "and async handlers run on the loop, not in a process"
            )
        self.runs_in: RunsIn = "loop" if is_async else runs_in or "thread"
        self._takes = _count_positional(function)
        self._config_type: Any = None
        self._prepared = False
        self.checked_as: Handler = self
        """The handler whose config its nodes have: another one if this stands in for that."""

    @property
    def needs_inputs(self) -> bool:
        """Whether the handler may look at its parents' outputs.

        Then they are fetched, however large they are.
        """
        return self._takes > 1 and not (self.is_built_in and self.name in INPUTLESS)

    @property
    def is_built_in(self) -> bool:
        return str(getattr(self.function, "__module__", "")).startswith(BUILT_IN_MODULES)

    @property
    def config_type(self) -> Any:
        """The type that the config is read into; None for plain dictionaries."""
        if not self._prepared:
            self._config_type = _config_type(self.function)
            self._prepared = True
        return self._config_type if self._takes else None

    def config_faults(self, config: Mapping[str, Any]) -> Iterable[ConfigFault]:
        """What of a config, as it stands in a document, doesn't fit this handler."""
        wanted = self.checked_as.config_type
        return () if wanted is None else config_type_faults(wanted, config)

    def arguments(self, config: Any, context: Any) -> tuple[Any, ...]:
        """The handler's arguments.

        As many of (config, context) as it takes, config in its own type.
        """
        if self.config_type is not None:
            config = _convert(config, self.config_type)
        return (config, context)[: self._takes]


def _count_positional(function: Callable[..., Any]) -> int:
    """How many of (config, context) a handler takes."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return 2
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(2, sum(parameter.kind in kinds for parameter in parameters))


def _config_type(function: Callable[..., Any]) -> Any:
    """The type that the config is read into; None for plain dictionaries."""
    target = function if inspect.isroutine(function) else type(function).__call__
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    try:
        hints = typing.get_type_hints(target)
    except (NameError, TypeError):
        return None  # a type that only exists for the type checker

    hint = hints.get(names[0]) if names else None
    return hint if is_config_type(hint) else None


def _convert(config: Any, wanted: Any) -> Any:
    try:
        if hasattr(wanted, "model_validate"):
            return wanted.model_validate(config)
        return msgspec.convert(config, wanted)
    except ValueError as error:  # msgspec's and pydantic's errors both are
        raise Terminal(
            f"the config doesn't fit {wanted.__name__}: {error}", category=ErrorCategory.CONFIG
        ) from None


class Registry:
    """Handlers by name, for an engine that shouldn't use those of the whole process."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        self._handlers: dict[str, Handler] = {handler.name: handler for handler in handlers}

    def add(self, handler: Handler) -> None:
        """Register a handler under its name."""
        if handler.name in BUILT_IN_HANDLERS or handler.name in HANDLER_ALIASES:
            raise SettingsError(
                f"{handler.name!r} is the name of a built-in handler; choose another"
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


def handler(  # noqa: PLR0913
    name: str,
    *,
    retry: Retry | None = None,
    timeout_seconds: float | None = None,
    queue: str | None = None,
    runs_in: RunsIn | None = None,
    registry: Registry | None = None,
) -> Callable[[Function], Function]:
    """Make a function a handler.

    It takes `(config, ctx)`, or fewer; it returns any JSON, or raises.

    `runs_in="process"` gives it a process of its own: for heavy computation, and for code that may
    crash.
    """

    def register(function: Function) -> Function:
        new = Handler(
            name,
            function,
            retry=retry,
            timeout_seconds=timeout_seconds,
            queue=queue,
            runs_in=runs_in,
        )
        (registry or registered).add(new)
        function.handler_name = name  # type: ignore[attr-defined]
        return function

    return register
