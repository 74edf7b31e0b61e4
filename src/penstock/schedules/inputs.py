"""`{{ slot.local_date }}` in the input of a schedule: what an execution is told of its slot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from penstock.schedules.times import Slot
from penstock.spelling import nearest_name

FIELDS = ("time", "local", "local_date", "previous", "name")
DEPTH_MAX = 100
_TEMPLATE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_FIELD = re.compile(r"\s*slot\.(\w+)\s*\Z")


class BadTemplate(ValueError):
    """A template that isn't about the slot. `path` says where it is."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def slot_fields(name: str, slot: Slot, previous_at: datetime | None) -> dict[str, Any]:
    """What templates can ask of a slot, by name."""
    return {
        "time": _utc(slot.at),
        "local": slot.local.isoformat(),
        "local_date": slot.local.date().isoformat(),
        "previous": None if previous_at is None else _utc(previous_at),
        "name": name,
    }


def check_templates(value: Any) -> None:
    """Raises `BadTemplate`."""
    render(value, dict.fromkeys(FIELDS, ""))


def render(value: Any, fields: Mapping[str, Any], path: str = "input", depth: int = 0) -> Any:
    """The input with its templates filled in. A text that is one template becomes its value."""
    if depth > DEPTH_MAX:
        raise BadTemplate(path, f"it is nested more than {DEPTH_MAX} deep")
    if isinstance(value, str):
        return _render_text(value, fields, path)
    if isinstance(value, Mapping):
        return {
            key: render(part, fields, f"{path}.{key}", depth + 1) for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            render(part, fields, f"{path}[{index}]", depth + 1) for index, part in enumerate(value)
        ]
    return value


def _render_text(text: str, fields: Mapping[str, Any], path: str) -> Any:
    if "{{" not in text:
        return text
    whole = _TEMPLATE.fullmatch(text)
    if whole is not None and "{{" not in whole[1]:
        return _value_of(whole[1], fields, path)

    def fill_in(match: re.Match[str]) -> str:
        value = _value_of(match[1], fields, path)
        return "" if value is None else str(value)

    return _TEMPLATE.sub(fill_in, text)


def _value_of(body: str, fields: Mapping[str, Any], path: str) -> Any:
    match = _FIELD.match(body)
    if match is not None and match[1] in fields:
        return fields[match[1]]
    written = f"{{{{{body[:100]}}}}}"
    hint = f"it may refer to {', '.join(f'slot.{name}' for name in FIELDS)}"
    if match is not None:
        nearest = nearest_name(match[1], FIELDS)
        if nearest:
            hint = f"did you mean slot.{nearest}?"
    raise BadTemplate(path, f"{written!r} can't be filled in; {hint}")


def _utc(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
