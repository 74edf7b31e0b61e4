"""Pages of which one part is made by a tool and the rest is somebody's own."""

from __future__ import annotations


def put_between(page: str, tool: str, part: str) -> str:
    """The page with the part between the marks of `make {tool}`."""
    begin, end = f"<!-- made by make {tool} -->", f"<!-- end of make {tool} -->"
    if begin not in page or end not in page:
        raise ValueError(f"the page needs {begin} and {end}, each on a line of its own")
    return f"{page.partition(begin)[0]}{begin}\n\n{part}\n\n{end}{page.partition(end)[2]}"
