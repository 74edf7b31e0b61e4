"""The tools that the agent may call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import penstock

OUTBOX = Path("outbox")


@penstock.handler("agent.tool")
def tool(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    """Call the tool that the model has named, with its arguments."""
    call = TOOLS.get(config["name"])
    if call is None:
        raise penstock.Terminal(f"there is no tool {config['name']!r}")
    ctx.log.info("%s(%s)", config["name"], config["arguments"])
    return {"result": call(**config["arguments"])}


def read_inbox() -> list[str]:
    return ["Ada: is the report ready?"]


def send_mail(to: str, text: str) -> str:
    OUTBOX.mkdir(exist_ok=True)
    (OUTBOX / f"{to}.txt").write_text(f"{text}\n", encoding="utf-8")
    return f"sent to {to}"


TOOLS = {"read_inbox": read_inbox, "send_mail": send_mail}
