"""Finds code by its structure, so that formatting and most renames don't matter.

A location is a file, a function in it and a pattern that matches there exactly once. `python` says
what a pattern of Python may be, `tokens` what one of Lua and SQL may be.
"""

from __future__ import annotations

from scripts.patterns.location import ROOT, SOURCES, Location, Sql
from scripts.patterns.source import Edit, PatternError, Span, apply

__all__ = ["ROOT", "SOURCES", "Edit", "Location", "PatternError", "Span", "Sql", "apply"]
