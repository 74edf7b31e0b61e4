"""Write ui/src/reasons.ts from penstock.engine.reasons: `python -m scripts.reason_texts`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from penstock.engine.reasons import HINTS, REASON_TEXTS

TARGET = Path(__file__).resolve().parents[1] / "ui" / "src" / "reasons.ts"
LINE_LENGTH = 100
SHORT_KEY = 4
"""The formatter of the UI leaves a long text on the line of a key as short as this."""
HEAD = """\
// Generated from src/penstock/engine/reasons.py by `make ui`. Don't edit it here.

/** The reasons of states in words. */
"""
HINTS_HEAD = """\

/** What to do about an error, by its category. Other errors say it in their message. */
"""


def render() -> str:
    reasons = _constant("REASON_TEXTS", REASON_TEXTS)
    hints = _constant("HINT_TEXTS", HINTS)
    return HEAD + reasons + HINTS_HEAD + hints


def _constant(name: str, texts: Mapping[str, str]) -> str:
    lines = [f"export const {name}: Readonly<Record<string, string>> = {{"]
    for key, text in sorted(texts.items()):
        literal = _literal(text)
        line = f"  {key}: {literal},"
        if len(line) <= LINE_LENGTH or len(key) <= SHORT_KEY:
            lines.append(line)
        else:
            lines += [f"  {key}:", f"    {literal},"]
    return "\n".join([*lines, "};", ""])


def _literal(text: str) -> str:
    """As the formatter of the UI writes it: in the quotes that need fewer escapes."""
    if text.count("'") > text.count('"'):
        return json.dumps(text, ensure_ascii=False)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
