"""Draw docs/images/quickstart.svg from a real run in a real terminal.

Needs tmux: `python scripts/picture.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, LINES = 92, 34


def tmux(*arguments: str) -> str:
    done = subprocess.run(
        ["tmux", "-L", "penstock", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def screen() -> str:
    """What a person would see when the quickstart has ended."""
    command = f"cd {ROOT}; clear; {sys.executable} examples/quickstart/run.py; tput civis; cat"
    tmux("new-session", "-d", "-s", "picture", "-x", str(COLUMNS), "-y", str(LINES), command)
    try:
        while "COMPLETED in" not in tmux("capture-pane", "-p", "-t", "picture"):
            time.sleep(0.2)
        return tmux("capture-pane", "-e", "-p", "-t", "picture")
    finally:
        tmux("kill-server")


def without_web_fonts(svg: str) -> str:
    """A picture that loads nothing from elsewhere: the reader's own monospace font will do."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    return svg.replace("<text ", '<text xml:space="preserve" ')


def main() -> None:
    lines = screen().rstrip().split("\n")
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        console.print("[dim]$[/] make run")
        console.print(Text.from_ansi("\n".join(lines)))
        target = ROOT / "docs" / "images" / "quickstart.svg"
        target.parent.mkdir(exist_ok=True)
        target.write_text(without_web_fonts(console.export_svg(title="penstock")), encoding="utf-8")


if __name__ == "__main__":
    main()
