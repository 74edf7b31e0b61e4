"""What a handler's function wants to be called with, and what is refused at decoration."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest

import penstock
from penstock import Context, Registry, SettingsError, testing
from penstock.errors import InvalidWorkflow, Terminal
from penstock.worker.registry import Handler


class Fit(Enum):
    COVER = "cover"
    CONTAIN = "contain"


@dataclasses.dataclass
class Resize:
    width: int


class Model:
    """What pydantic's models look like from outside."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if not isinstance(value, dict):
            raise ValueError("not an object")  # noqa: TRY004 -- as pydantic does
        return cls(value)


CTX = Context(execution_id="e1", node_id="a")
CONFIG = {"url": "x", "width": 3}


def whole(config, ctx):
    return config, ctx


def only_config(data):
    return data


def nothing():
    return "called"


def only_context(ctx):
    return ctx


def other_order(ctx, config):
    return config, ctx


def by_annotation(config: dict[str, Any], task: penstock.Context):
    return config, task


def keyword_context(config, *, ctx):
    return config, ctx


def with_default(config, ctx, retries=3):
    return config, ctx, retries


def unused(_, __):
    return _, __


def all_of_it(*args):
    return args


def typed(config: Mapping[str, Any] | None):
    return config


def optional(config=None):
    return config


WHOLE = [
    (whole, (CONFIG, CTX)),
    (only_config, CONFIG),
    (nothing, "called"),
    (only_context, CTX),
    (other_order, (CONFIG, CTX)),
    (by_annotation, (CONFIG, CTX)),
    (keyword_context, (CONFIG, CTX)),
    (with_default, (CONFIG, CTX, 3)),
    (unused, (CONFIG, CTX)),
    (all_of_it, (CONFIG, CTX)),
    (typed, CONFIG),
    (optional, CONFIG),
    (functools.partial(with_default, retries=5), (CONFIG, CTX, 5)),
    (lambda config: config, CONFIG),
]


@pytest.mark.parametrize(("function", "expected"), WHOLE)
def test_a_function_takes_the_whole_config(function: Callable[..., Any], expected: Any) -> None:
    assert Handler("h", function).prepare(CONFIG, CTX)() == expected


def keys(url: str, width: int = 100):
    return url, width


def keys_and_context(ctx, url, width):
    return url, width, ctx


def keyword_only(*, url, width, ctx):
    return url, width, ctx


def single_key(url: str):
    return url


def rest(url, **others):
    return url, others


def anything(**config):
    return config


async def in_the_loop(url: str, width: int, context):
    return url, width, context


KEYS = [
    (keys, CONFIG, ("x", 3)),
    (keys, {"url": "x"}, ("x", 100)),
    (keys_and_context, CONFIG, ("x", 3, CTX)),
    (keyword_only, CONFIG, ("x", 3, CTX)),
    (single_key, {"url": "x"}, "x"),
    (rest, CONFIG, ("x", {"width": 3})),
    (anything, CONFIG, CONFIG),
]


@pytest.mark.parametrize(("function", "config", "expected"), KEYS)
def test_a_function_takes_the_keys_of_its_config(
    function: Callable[..., Any], config: dict[str, Any], expected: Any
) -> None:
    assert Handler("h", function).prepare(config, CTX)() == expected


def converting(
    at: datetime,
    fit: Fit = Fit.COVER,
    size: Resize | None = None,
    tags: Annotated[list[str], msgspec.Meta(max_length=2)] = (),  # type: ignore[assignment]
    mode: Literal["fast", "good"] = "fast",
    model: Model | None = None,
):
    return at, fit, size, tags, mode, model


def test_values_are_read_into_the_types_of_the_parameters() -> None:
    config = {"at": "2026-01-31T12:00:00Z", "fit": "contain", "size": {"width": 3}, "tags": ["a"]}
    at, fit, size, tags, mode, _ = Handler("h", converting).prepare(config, CTX)()
    assert at == datetime.fromisoformat("2026-01-31T12:00:00Z")
    assert (fit, size, tags, mode) == (Fit.CONTAIN, Resize(3), ["a"], "fast")

    def with_model(model: Model, maybe: Model | None = None, *, ctx):
        return model.value, maybe

    assert Handler("h", with_model).prepare({"model": {"a": 1}}, CTX)() == ({"a": 1}, None)
    with pytest.raises(Terminal, match="not an object"):
        Handler("h", with_model).prepare({"model": 7}, CTX)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"url": "x", "width": "wide"}, r'"width" of the config doesn\'t fit keys\(\): Expected'),
        ({"url": "x", "widht": 3}, r"keys\(\) has no parameter 'widht'; did you mean 'width'"),
        ({"width": 3}, r'keys\(\) needs "url" in the config'),
    ],
)
def test_a_config_that_does_not_fit_fails_the_node_for_good(
    config: dict[str, Any], words: str
) -> None:
    with pytest.raises(Terminal, match=words) as caught:
        Handler("h", keys).prepare(config, CTX)
    assert caught.value.category == "config"


def test_a_literal_config_is_checked_at_submission() -> None:
    registry = Registry([Handler("resize", keys)])

    async def problems_of(config: dict[str, Any]) -> list[tuple[str, str]]:
        async with penstock.Engine("memory://", registry=registry) as engine:
            node = {"id": "a", "handler": "resize", "config": config}
            view = await engine.validate({"name": "images", "nodes": [node]})
            return [(problem["code"], problem["path"]) for problem in view["problems"]]

    import asyncio  # noqa: PLC0415

    def checked(**config: Any) -> list[tuple[str, str]]:
        return asyncio.run(problems_of(config))

    assert checked(url="x", width=3) == []
    assert checked(url="{{ input.url }}", width="{{ input.width }}") == []
    assert checked(url=7) == [("bad_config", "nodes[0].config.url")]
    assert checked(url="x", widht=3) == [("unknown_config", "nodes[0].config.widht")]
    assert checked(width=3) == [("missing_config", "nodes[0].config")]


def test_keys_and_references_go_through_a_whole_run() -> None:
    registry_names = penstock.Workflow("images")
    registry_names.node("small", "resize", url="{{ input.url }}", width="{{ input.width }}")
    registry_names.node("later", "linger", url="y", width=1)

    async def wait(url: str, width: int, ctx: Context) -> list[Any]:
        return [url, width, ctx.node_id]

    run = testing.run(
        registry_names, {"url": "x", "width": 7}, handlers={"resize": keys, "linger": wait}
    )
    assert run.result.unwrap() == {"small": ["x", 7], "later": ["y", 1, "later"]}
    assert run.calls["resize"][0].config == {"url": "x", "width": 7}
    with pytest.raises(InvalidWorkflow, match="has no parameter"):
        testing.run(
            {"name": "n", "nodes": [{"id": "a", "handler": "resize", "config": {"u": 1}}]},
            handlers={"resize": keys},
            settings=penstock.config.Settings.load({}, {}),
        )


def extra(config, ctx, session):
    return config, ctx, session


def position_only(url, width, /):
    return url, width


def yields(config):
    yield config


async def yields_later(config):
    yield config


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (extra, "takes 'config' and 'session', which nobody gives it; a handler takes"),
        (position_only, "takes 'url' by its position only"),
        (yields, "is a generator; return a list"),
        (yields_later, "is a generator; return a list"),
        (7, "is 7, which can't be called"),
        (type, "has no signature that Python knows"),
    ],
)
def test_a_signature_that_cannot_be_called_is_refused(function: Any, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        penstock.handler("h", registry=Registry())(function)


def test_a_handler_without_brackets_has_the_name_of_its_function() -> None:
    registry = Registry()

    @penstock.handler(registry=registry, timeout_seconds=5)
    def shout(text: str) -> str:
        return text.upper()

    assert registry.names == {"shout"}
    assert shout("a") == "A"
    flow = penstock.Workflow("loud")
    flow.node("a", shout, text="hi")
    assert flow.document()["dag"]["nodes"][0]["handler"] == "shout"
    for unnamed in (lambda config: config, functools.partial(shout)):
        with pytest.raises(SettingsError, match="has no name of its own"):
            penstock.handler(unnamed)
    with pytest.raises(SettingsError, match="is the name of a built-in handler"):

        @penstock.handler
        def echo(config):
            return config


def test_the_decorator_alone_registers_in_the_process() -> None:
    @penstock.handler
    def only_in_test_signatures(config):
        return config

    assert only_in_test_signatures.handler_name == "only_in_test_signatures"  # type: ignore[attr-defined]
    run = testing.run({"name": "n", "nodes": [{"id": "a", "handler": "only_in_test_signatures"}]})
    assert run.result.unwrap() == {"a": {}}


def make(value: int) -> Callable[..., Any]:
    def handle(config):
        return value

    return handle


def test_a_name_that_another_function_has_is_refused() -> None:
    registry = Registry()
    penstock.handler("pay", registry=registry)(whole)
    with pytest.raises(SettingsError) as caught:
        penstock.handler("pay", registry=registry)(keys)
    assert "the handler 'pay' is whole (" in str(caught.value)
    assert "test_signatures.py:" in str(caught.value)
    # the same function again, as when its module is imported again
    penstock.handler("pay", registry=registry)(whole)
    penstock.handler("made", registry=registry)(make(1))
    penstock.handler("made", registry=registry)(make(2))
    newest = registry.get("made")
    assert newest is not None
    assert newest.prepare({}, CTX)() == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: penstock.handler("h", timeout=3), "did you mean timeout_seconds=…"),  # type: ignore[call-overload]
        (lambda: penstock.handler("h", retries=3), "did you mean retry=…"),  # type: ignore[call-overload]
        (lambda: penstock.handler("h", colour="red"), "it has name, retry, "),  # type: ignore[call-overload]
        (lambda: penstock.Retry(max_retries=3), "max_attempts=…, which counts the first"),  # type: ignore[call-arg]
        (lambda: penstock.Retry(jitter=0), "did you mean jitter_seconds=…"),  # type: ignore[call-arg]
        (lambda: penstock.Retry(multiplyer=2), "did you mean multiplier=…"),  # type: ignore[call-arg]
        (lambda: penstock.Retry(colour=2), r"see help\(penstock.Retry\)"),  # type: ignore[call-arg]
        (lambda: penstock.Workflow("w", inputs={}), "did you mean input=…"),
        (lambda: penstock.Workflow("w", timeout_second=3), "did you mean timeout_seconds=…"),
        (lambda: penstock.Workflow("w", nodes=[]), r"with its method node\(\)"),
    ],
)
def test_a_near_miss_of_an_option_is_refused_with_the_right_name(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


def test_every_field_of_a_document_is_an_argument_of_a_workflow() -> None:
    fields = {"timeout": 5, "on_failure": "continue", "labels": {}, "metadata": {}, "owner": "ada"}
    document = penstock.Workflow("w", **fields).document()
    assert {name: document[name] for name in fields} == fields
    assert penstock.Retry(4, 1.0) == penstock.Retry(max_attempts=4, initial_delay_seconds=1.0)
