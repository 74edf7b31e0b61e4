"""`make run`: start a small web shop on this machine and run workflow.json against it.

python run.py [--customer 2] [any flag of `penstock run`]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from shop import open_shop

from penstock.cli import main

HERE = Path(__file__).resolve().parent


def run() -> int:
    parser = argparse.ArgumentParser(
        description="Run the quickstart workflow against a shop on this machine."
    )
    parser.add_argument("--customer", type=int, default=1, help="1 is a VIP, 2 isn't")
    options, flags = parser.parse_known_args()
    with open_shop() as address:
        input_text = json.dumps({"shop": address, "customer_id": options.customer})
        workflow, handlers = str(HERE / "workflow.json"), str(HERE / "handlers.py")
        return main(["run", workflow, "--handlers", handlers, "--input", input_text, *flags])


if __name__ == "__main__":
    sys.exit(run())
