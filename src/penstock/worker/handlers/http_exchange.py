"""HTTP requests and responses, and what a status means for the attempt.

Nothing here touches the network.
"""

from __future__ import annotations

import codecs
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from penstock.engine.reasons import ErrorCategory
from penstock.errors import Retryable, Terminal
from penstock.sandbox import Job, Overrun, Sandbox, call
from penstock.worker.secrets import SecretInUse

RETRIED = frozenset({408, 425, 429})
RETRY_AFTER_SECONDS_MAX = 3600.0
EXCERPT_BYTES = 2048
INLINE_BYTES = 256 * 1024
"""The size up to which an answer is read on the worker's loop.

A larger one is read in the sandbox: a decoder of JSON lets nobody else run until it is done.
"""
READ_SECONDS = 60.0
"""Processor time for reading an answer in the sandbox.

It is work for each byte, so the size of the answer bounds it as well.
"""

_SECRET_PARAMETER = re.compile(
    r"key|token|secret|passw|pwd|sig$|signature|auth|credential|session", re.IGNORECASE
)
# Python knows encodings (punycode, utf-7, unicode_escape) that are slow on hostile input or make
# broken text.
_CHARSET = re.compile(
    r"utf-(8|16|32)(-[bl]e)?|ascii|(iso8859|cp|shift_jis|euc|gb|big5|koi8|mac)[a-z0-9_-]*"
)


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. `expect` has the statuses that count as success; empty means 200 to 299."""

    method: str
    url: str
    headers: Mapping[str, str]
    params: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    timeout_seconds: float | None = None
    expect: frozenset[int] = frozenset()
    category: str = "http"
    secrets: tuple[SecretInUse, ...] = ()
    """Secrets that may be in it; at every redirect it is checked where they may go."""

    def accepts(self, status: int) -> bool:
        if self.expect:
            return status in self.expect
        return 200 <= status <= 299  # noqa: PLR2004 -- HTTP's success

    @property
    def shown(self) -> str:
        """The URL for messages: neither credentials nor parameters."""
        return f"{self.method} {shown_url(self.url).partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class Response:
    status_code: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    content_type: str
    charset: str | None
    elapsed_ms: int

    @property
    def data(self) -> Any:
        """The body as a value: JSON, text, or `{"base64": ..., "content_type": ...}`.

        None without a body. What the content type calls JSON and isn't (NaN, broken, too deep)
        stays text.
        """
        if not self.body:
            return None
        if self.is_json:
            try:
                if self.charset:
                    return msgspec.json.decode(self.text.removeprefix("\ufeff"))
                return msgspec.json.decode(self.body.removeprefix(codecs.BOM_UTF8))
            except (msgspec.MsgspecError, RecursionError, UnicodeError):
                return self.text
        if self._is_text():
            return self.text
        return {"base64": _base64(self.body), "content_type": self.content_type}

    @property
    def is_json(self) -> bool:
        """Whether the body is JSON, by its content type."""
        return self.content_type == "application/json" or self.content_type.endswith("+json")

    def to_parts(self) -> list[bytes]:
        """The response as parts of a job for the sandbox."""
        without_body = replace(self, headers=dict(self.headers), body=b"")
        return [msgspec.msgpack.encode(without_body), self.body]

    @classmethod
    def from_parts(cls, parts: Sequence[bytes]) -> Response:
        return replace(msgspec.msgpack.decode(parts[0], type=cls), body=parts[1])

    @property
    def text(self) -> str:
        return self.body.decode(_known_charset(self.charset), "replace")

    def _is_text(self) -> bool:
        if self.charset or self.content_type.startswith("text/"):
            return True
        try:
            self.body.decode()
        except UnicodeDecodeError:
            return False
        return b"\0" not in self.body


async def read_answer(
    sandbox: Sandbox, function: str, response: Response, turn: str
) -> msgspec.Raw | None:
    """The handler's output, made in the sandbox of a large answer.

    None for a small one, which can be read on the worker's loop. Raises `Terminal` for one that
    goes over the sandbox's limits.
    """
    if len(response.body) <= INLINE_BYTES:
        return None

    job = Job(function, response.to_parts(), turn=turn, seconds=READ_SECONDS)
    try:
        return msgspec.Raw(await call(sandbox, job))
    except Overrun as error:
        message = f"the answer has {len(response.body):,} bytes and can't be read: {error}"
        raise Terminal(message, category=ErrorCategory.TOO_LARGE) from None


def _base64(body: bytes) -> str:
    from base64 import b64encode  # noqa: PLC0415 -- binary answers are rare

    return b64encode(body).decode()


def _known_charset(charset: str | None) -> str:
    try:
        name = codecs.lookup(charset or "utf-8").name
    except LookupError:
        return "utf-8"
    return name if _CHARSET.fullmatch(name) else "utf-8"


def shown_url(url: str) -> str:
    """The URL without user and password, with `***` for parameters that are named like secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a malformed URL"

    query = parts.query
    pairs = parse_qsl(query, keep_blank_values=True)
    if any(_SECRET_PARAMETER.search(name) for name, _ in pairs):
        redacted = []
        for name, value in pairs:
            is_secret = _SECRET_PARAMETER.search(name)
            redacted.append((name, "***" if is_secret else value))
        query = urlencode(redacted, safe="*")

    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, query, ""))


def failure(request: Request, response: Response, hint: str = "") -> Retryable | Terminal:
    """The error to raise for a status that isn't a success."""
    status = response.status_code
    expected = ""
    if request.expect:
        expected = f", expected {', '.join(map(str, sorted(request.expect)))}"
    message = f"{request.shown} answered {status}{expected}{hint}"

    excerpt = response.body[:EXCERPT_BYTES].decode("utf-8", "replace")
    detail = {"status_code": status, "url": response.url, "body": excerpt}

    if status in RETRIED or status >= 500:  # noqa: PLR2004 -- the server's own failures
        after = retry_after(response.headers.get("retry-after", ""), time.time())
        return Retryable(message, after=after, category=request.category, detail=detail)
    return Terminal(message, category=request.category, detail=detail)


def retry_after(value: str, now: float) -> float | None:
    """Seconds from a `Retry-After` header, which has a number or a date; at most an hour."""
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        return min(float(value), RETRY_AFTER_SECONDS_MAX)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 -- dates are rare here

    try:
        at = parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(at - now, 0.0), RETRY_AFTER_SECONDS_MAX)
