"""Parameters of routes, read from a request's path, query and headers as their types say.

A function of a route has them in its signature: `limit: Limit = 50`, where `Limit` is
`Annotated[int, Query(ge=1, le=500)]`. The signature is read once. msgspec converts and checks what
a request has, and the OpenAPI document gets the JSON Schema of the same type, so the description
and the check can't disagree.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request

REFERENCE = "#/components/schemas/{name}"
"""A schema of the OpenAPI document."""
BOOLEANS = {
    **dict.fromkeys(("true", "1", "yes", "on", "t", "y"), True),
    **dict.fromkeys(("false", "0", "no", "off", "f", "n"), False),
}
NOUNS = {"integer": "an integer", "number": "a number", "boolean": "true or false"}
REQUIRED = inspect.Parameter.empty

Place: TypeAlias = Literal["path", "query", "header"]
Schema: TypeAlias = dict[str, Any]
Mistakes: TypeAlias = list[tuple[str, str]]
"""What is wrong with a request: paths, such as `query.limit`, and messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A parameter in the query: its name there, its limits, its description."""

    place: ClassVar[Place] = "query"
    alias: str | None = None
    """Its name in the request, where that isn't the argument's."""
    description: str | None = None
    ge: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    examples: list[Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Header(Query):
    """A parameter in a header."""

    place: ClassVar[Place] = "header"


@dataclass(frozen=True, slots=True, kw_only=True)
class Path(Query):
    """A parameter in the path."""

    place: ClassVar[Place] = "path"


class Parameter:
    """A parameter of a route."""

    def __init__(self, argument: str, annotation: Any, default: Any, *, in_path: bool) -> None:
        annotated_type, rules = _split(annotation, in_path=in_path)
        value_type = _without_none(annotated_type)
        self.argument = argument
        self.name = rules.alias or argument
        self.place = rules.place
        self.path = f"{self.place}.{self.name}"
        """Its path in a problem document."""
        self.is_list = get_origin(value_type) is list
        if self.is_list:
            _check_list(argument, default, rules)
        self.default = default
        self.rules = rules
        item_type = get_args(value_type)[0] if self.is_list else value_type
        self._is_boolean = item_type is bool
        self._is_optional = value_type is not annotated_type
        self._type = item_type if self.is_list else Annotated[item_type, _meta(rules)]
        self._message = f"it must be {_expected(*_schema_of(self._type), rules.pattern)}"

    def read(self, text: str | None, mistakes: Mistakes) -> Any:
        """Its value in a request that has this text, or has none."""
        if text is not None:
            return self._convert(text, self.path, mistakes)
        if self.default is REQUIRED:
            mistakes.append((self.path, "it is required"))
        return self.default

    def read_list(self, texts: list[str], mistakes: Mistakes) -> list[Any]:
        """Its values in a request that has these texts."""
        length_max = self.rules.max_length
        if length_max is not None and len(texts) > length_max:
            message = f"there are {len(texts)} of them, and at most {length_max} are possible"
            mistakes.append((self.path, message))
            return []
        return [
            self._convert(text, f"{self.path}.{index}", mistakes)
            for index, text in enumerate(texts)
        ]

    def _convert(self, text: str, path: str, mistakes: Mistakes) -> Any:
        try:
            if self._is_boolean:
                return BOOLEANS[text.lower()]
            return msgspec.convert(text, self._type, strict=False)
        except (KeyError, msgspec.ValidationError):
            mistakes.append((path, self._message))
            return None

    def describe(self) -> dict[str, Any]:
        """The parameter in the OpenAPI document."""
        schema, _ = _schema_of(self._type)
        if self.rules.pattern is not None:
            schema["pattern"] = self.rules.pattern
        if self.is_list:
            schema = {"type": "array", "items": schema}
            if self.rules.max_length is not None:
                schema["maxItems"] = self.rules.max_length
        if self._is_optional:
            schema = {"anyOf": [schema, {"type": "null"}]}
        if self.rules.examples is not None:
            schema["examples"] = self.rules.examples
        if self.default is not REQUIRED and self.default is not None:
            schema["default"] = self.default

        described: dict[str, Any] = {
            "name": self.name,
            "in": self.place,
            "required": self.default is REQUIRED,
            "schema": schema,
        }
        if self.rules.description is not None:
            described["description"] = self.rules.description
        return described

    def schemas(self) -> dict[str, Schema]:
        """The schemas that its description refers to, by name."""
        _, schemas = _schema_of(self._type)
        return schemas


class Parameters:
    """The parameters of a route."""

    def __init__(self, endpoint: Callable[..., Any], path_names: frozenset[str]) -> None:
        """`path_names` are the parameters that the route's path has."""
        hints = get_type_hints(endpoint, include_extras=True)
        self._request_argument: str | None = None
        by_place: dict[Place, list[Parameter]] = {"path": [], "query": [], "header": []}
        for argument in inspect.signature(endpoint).parameters.values():
            hint = hints[argument.name]
            if hint is Request:
                self._request_argument = argument.name
                continue
            in_path = argument.name in path_names
            parameter = Parameter(argument.name, hint, argument.default, in_path=in_path)
            by_place[parameter.place].append(parameter)

        self._in_path = by_place["path"]
        self._in_query = by_place["query"]
        self._in_headers = by_place["header"]
        unread = path_names - {parameter.name for parameter in self._in_path}
        if unread:
            raise TypeError(f"{endpoint.__qualname__} doesn't take {', '.join(sorted(unread))}")

    def __iter__(self) -> Iterator[Parameter]:
        yield from (*self._in_path, *self._in_query, *self._in_headers)

    def read(self, request: Request) -> tuple[dict[str, Any], Mistakes]:
        """The arguments for the route's function, and what is wrong with the request."""
        arguments: dict[str, Any] = {}
        mistakes: Mistakes = []
        if self._request_argument is not None:
            arguments[self._request_argument] = request
        for parameter in self._in_path:
            text = request.path_params[parameter.name]
            arguments[parameter.argument] = parameter.read(text, mistakes)
        if self._in_query:
            self._read_query(request.query_params, arguments, mistakes)
        if self._in_headers:
            self._read_headers(request.headers, arguments, mistakes)
        return arguments, mistakes

    def _read_query(
        self, query: QueryParams, arguments: dict[str, Any], mistakes: Mistakes
    ) -> None:
        for parameter in self._in_query:
            if parameter.is_list:
                texts = query.getlist(parameter.name)
                arguments[parameter.argument] = parameter.read_list(texts, mistakes)
            else:
                # the last one, if it was sent more than once
                text = query.get(parameter.name)
                arguments[parameter.argument] = parameter.read(text, mistakes)

    def _read_headers(
        self, headers: Headers, arguments: dict[str, Any], mistakes: Mistakes
    ) -> None:
        for parameter in self._in_headers:
            text = headers.get(parameter.name)
            arguments[parameter.argument] = parameter.read(text, mistakes)


def _split(annotation: Any, *, in_path: bool) -> tuple[Any, Query]:
    """The type of a parameter, and the rules for it."""
    rules: Query = Path() if in_path else Query()
    if get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
        rules = next((part for part in metadata if isinstance(part, Query)), rules)
    return annotation, rules


def _without_none(annotated_type: Any) -> Any:
    """The type of what is sent: None is the default, and can't be sent."""
    if get_origin(annotated_type) not in {Union, UnionType}:
        return annotated_type
    members = [member for member in get_args(annotated_type) if member is not NoneType]
    return Union[tuple(members)]  # noqa: UP007 -- the members are known at run time only


def _check_list(argument: str, default: Any, rules: Query) -> None:
    """Raise TypeError for a list whose rules would be ignored."""
    others = replace(rules, alias=None, description=None, max_length=None)
    if default != [] or others != Query():
        raise TypeError(f"{argument} is a list: it has the default [], and max_length at most")


def _meta(rules: Query) -> msgspec.Meta:
    pattern = rules.pattern
    if pattern is not None and pattern.endswith("$"):
        # in Python, `$` also matches before a line end
        pattern = pattern.removesuffix("$") + r"\Z"
    limits: dict[str, Any] = {
        "ge": rules.ge,
        "le": rules.le,
        "min_length": rules.min_length,
        "max_length": rules.max_length,
        "pattern": pattern,
    }
    return msgspec.Meta(**limits)


def _schema_of(value_type: Any) -> tuple[Schema, dict[str, Schema]]:
    """The schema of a type, and the schemas that it refers to."""
    [schema], schemas = msgspec.json.schema_components([value_type], ref_template=REFERENCE)
    return schema, schemas


def _expected(schema: Schema, schemas: dict[str, Schema], pattern: str | None) -> str:
    """What a parameter must be, in words."""
    for named in schemas.values():
        schema = named
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if pattern is not None:
        return f"text that matches {pattern}"
    if schema["type"] == "string":
        return _bounded("text of", schema.get("minLength"), schema.get("maxLength"), " characters")
    noun = NOUNS[schema["type"]]
    return _bounded(noun, schema.get("minimum"), schema.get("maximum"))


def _bounded(noun: str, least: float | None, most: float | None, unit: str = "") -> str:
    if least is not None and most is not None:
        return f"{noun} {'' if unit else 'from '}{int(least)} to {int(most)}{unit}"
    if most is not None:
        return f"{noun} at most {int(most)}{unit}"
    if least is not None:
        return f"{noun} at least {int(least)}{unit}"
    return noun.removesuffix(" of")
