"""A workflow written in Python: a reference to a node's output creates the dependency.

python report.py
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import penstock

SALES = {
    "north": [120, 80, 310],
    "south": [95, 240],
    "west": [60, 70, 80, 90],
}


@dataclass
class Region:
    region: str


@penstock.handler("load_sales", retry=penstock.Retry(max_attempts=5, initial_delay_seconds=0.1))
def load_sales(config: Region, ctx: penstock.Context) -> dict[str, Any]:
    if config.region == "west" and ctx.attempt == 1:
        # any exception is retried according to the policy above
        raise ConnectionError("the west is slow to wake up")
    return {"region": config.region, "total": sum(SALES[config.region])}


@penstock.handler("rank")
def rank(config: dict[str, Any]) -> dict[str, Any]:
    regions = sorted(config["regions"], key=lambda region: region["total"], reverse=True)
    return {"best": regions[0]["region"], "ranking": [region["region"] for region in regions]}


def build() -> penstock.Workflow:
    flow = penstock.Workflow("sales-report")
    regions = [flow.node(f"sales_{name}", load_sales, region=name) for name in SALES]
    ranking = flow.node("ranking", rank, regions=regions)
    flow.node(
        "output",
        "output",
        config={
            "headline": penstock.text("{} leads", ranking["best"]),
            "ranking": ranking["ranking"],
        },
    )
    return flow


def main() -> int:
    result = penstock.run(build())
    print(f"{result.state}: {result.output['headline']}")
    for name, node in result.nodes.items():
        print(f"  {name:<12} {node['state']:<10} attempt {node['attempt']}")
    return 0 if result.completed else 1


if __name__ == "__main__":
    sys.exit(main())
