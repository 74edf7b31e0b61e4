"""The part of curl that the docs use, for machines without it.

-s, -N, -X METHOD, -H "name: value", -d DATA|@FILE.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path


def main(arguments: list[str]) -> None:
    method = None
    data = None
    headers = {}
    address = ""
    words = iter(arguments)
    for argument in words:
        if argument in ("-s", "-N", "-sN"):
            continue
        if argument == "-X":
            method = next(words)
        elif argument == "-H":
            name, _, value = next(words).partition(":")
            headers[name] = value.strip()
        elif argument == "-d":
            text = next(words)
            data = Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()
        else:
            address = argument if "//" in argument else f"http://{argument}"
    request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310 -- the page's own service
    try:
        answer = urllib.request.urlopen(request)  # noqa: S310
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        sys.stdout.write(answer.read().decode())


if __name__ == "__main__":
    main(sys.argv[1:])
