"""Problem documents (RFC 9457): what is wrong with a request."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.definition.problems import Problem


class ProblemDocument(msgspec.Struct, kw_only=True):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: Annotated[str, Meta(description="What a program can rely on.")]
    problems: list[Problem] | UnsetType = UNSET
