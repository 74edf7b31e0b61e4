"""Write ui/openapi.json, from which the page's types are made: `python scripts/openapi.py`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from penstock.api.app import create_app
from penstock.api.describing import openapi_document
from penstock.api.routing import routes_of
from penstock.config import Settings
from penstock.runtime import Engine
from penstock.service.fleet import EmbeddedFleet

TARGET = Path(__file__).resolve().parents[1] / "ui" / "openapi.json"


async def describe() -> str:
    settings = Settings.load({"store": "memory://"}, environ={})
    async with Engine(settings=settings) as engine:
        fleet = EmbeddedFleet(engine.stores, engine.worker, engine.orchestrator)
        # the document doesn't change with a release's number
        app = create_app(engine.service, fleet, settings, version="0")
        return (
            json.dumps(openapi_document(routes_of(app), "0"), indent=1, ensure_ascii=False) + "\n"
        )


if __name__ == "__main__":
    TARGET.write_text(asyncio.run(describe()), encoding="utf-8")
