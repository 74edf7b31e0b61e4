"""docs/http.md lists every route of the main API, with the scope that it needs."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from penstock.api.access import OPEN, TABLE
from scripts.openapi import describe
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`[A-Z]+ /.*`) \| .* \| (`\w+`|none) \|$", re.MULTILINE)
ROUTE = re.compile(r"`([A-Z]+) (/[^`]*)`")
BASE = "/api/v1"
OUTSIDE = {"/metrics"}
"""Routes that OpenAPI doesn't have."""
COMPATIBLE = re.compile(rf"{BASE}/(workflow/.*|workflow|admin/.*)|/v1/health")
"""They have a page of their own."""


def listed() -> dict[tuple[str, str], str]:
    """The scope by method and path, with the names of parameters left out."""
    routes: dict[tuple[str, str], str] = {}
    for cell, scope in ROW.findall(PAGE):
        for method, path in ROUTE.findall(cell):
            prefix = "" if path in OUTSIDE or path.startswith("/health") else BASE
            routes[method, prefix + _without_names(path)] = scope.strip("`")
    return routes


def described() -> set[tuple[str, str]]:
    paths = json.loads(asyncio.run(describe()))["paths"]
    routes = {("GET", path) for path in OUTSIDE}
    for path, operations in paths.items():
        if not COMPATIBLE.fullmatch(path):
            routes |= {(method.upper(), _without_names(path)) for method in operations}
    return routes


def _without_names(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def test_every_route_is_listed_and_no_other():
    assert listed().keys() == described()


@pytest.mark.parametrize("route", listed(), ids=" ".join)
def test_a_route_is_listed_with_its_scope(route: tuple[str, str]):
    needed = TABLE[route].scope
    assert listed()[route] == ("none" if needed == OPEN else needed)
