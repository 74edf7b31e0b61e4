"""Signatures of webhooks: whether a request comes from somebody who knows the secret.

    verification = Verification(scheme="github", secret="GITHUB_WEBHOOK")
    check_signature(verification, request, [secret], now=now)

The signature is over the bytes as they came: what was parsed and written again has other ones. All
signatures of a request are compared with those of all secrets, in constant time, so that a secret
can be replaced while the sender still uses the one before.

Who is refused isn't told why. The text of a `BadSignature` is for the log, and quotes nothing of
the request.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

SCHEMES = ("standard", "github", "stripe", "slack", "gitlab", "hmac")
TOLERANCE_SECONDS = 300.0
TOLERANCE_SECONDS_MAX = 3600.0
SIGNATURES_MAX = 16
"""Signatures of one request that are compared."""
SECRETS_MAX = 5
"""Secrets of one hook."""
STANDARD_PREFIX = "whsec_"
GITLAB_TOKEN = "x-gitlab-token"  # noqa: S105 -- the name of a header
BODY = "{body}"
TIMESTAMP = "{timestamp}"
_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
_HEX = re.compile(r"[0-9A-Fa-f]{64}", re.ASCII)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


class Verification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How requests to a hook are verified: the scheme, and the names of its secrets."""

    scheme: Literal["standard", "github", "stripe", "slack", "gitlab", "hmac"]
    secret: str | tuple[str, ...]
    """The name of a secret, or several: each of them counts."""
    tolerance_seconds: float = TOLERANCE_SECONDS
    header: str | None = None
    """Of `hmac`: the header with the signature."""
    prefix: str = ""
    """Of `hmac`: what stands before the signature, such as `sha256=`."""
    encoding: Literal["hex", "base64"] = "hex"
    signed: str = BODY
    """Of `hmac`: what is signed, such as `{timestamp}.{body}`."""
    timestamp_header: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets."""
        return (self.secret,) if isinstance(self.secret, str) else self.secret

    @property
    def secret_headers(self) -> frozenset[str]:
        """Headers that hold the secret, or a signature: nobody is shown them."""
        if self.scheme == "hmac":
            return frozenset({(self.header or "").lower()})
        return frozenset({_HEADERS[self.scheme]})


class SignedRequest(NamedTuple):
    """What of a request is signed."""

    headers: Mapping[str, str]
    """By name in small letters; several of one name are joined by commas."""
    body: bytes
    """As it came."""


class Verified(NamedTuple):
    """What a valid signature says of its request."""

    timestamp: float | None = None
    message_id: str | None = None
    """The id of the message, where it is signed: a repeated request has the same one."""


class BadSignature(Exception):
    """A request that isn't signed with any of the secrets, or was signed too long ago."""


class BadVerification(ValueError):
    """Settings of a hook that can't verify anything. `field` says which one."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class _Claimed(NamedTuple):
    """What a request says about its signature."""

    content: bytes
    """What must have been signed."""
    signatures: tuple[bytes, ...]
    timestamp: float | None = None
    message_id: str | None = None


def check_verification(verification: Verification) -> None:
    """Raises `BadVerification` for settings that can't verify anything."""
    names = verification.secrets
    if not names or not all(names):
        raise BadVerification("secret", "name at least one secret, as in 'STRIPE_WEBHOOK'")
    if len(names) > SECRETS_MAX:
        raise BadVerification("secret", f"there may be {SECRETS_MAX} secrets, not {len(names)}")
    if not 0 < verification.tolerance_seconds <= TOLERANCE_SECONDS_MAX:
        raise BadVerification(
            "tolerance_seconds", f"it must be above 0, and {TOLERANCE_SECONDS_MAX:,.0f} at most"
        )
    if verification.scheme == "hmac":
        _check_hmac(verification)
        return
    own = Verification(scheme="hmac", secret="")
    for field in ("header", "prefix", "encoding", "signed", "timestamp_header"):
        if getattr(verification, field) != getattr(own, field):
            raise BadVerification(
                field, f"only the scheme 'hmac' has it, not {_quoted(verification)}"
            )


def _check_hmac(verification: Verification) -> None:
    header = verification.header
    if header is None or not _HEADER_NAME.fullmatch(header):
        raise BadVerification("header", "name the header with the signature, as in 'X-Signature'")
    signed = verification.signed
    placeholders = _PLACEHOLDER.findall(signed)
    if placeholders.count(BODY) != 1 or not {BODY, TIMESTAMP}.issuperset(placeholders):
        raise BadVerification(
            "signed",
            f"it must have {BODY} once, and may have {TIMESTAMP}, as in '{{timestamp}}.{{body}}'",
        )
    timestamp_header = verification.timestamp_header
    if (TIMESTAMP in placeholders) != (timestamp_header is not None):
        # a time that isn't signed can be replaced with the present one
        raise BadVerification(
            "timestamp_header", f"it goes with {TIMESTAMP} in `signed`: give both or neither"
        )
    if timestamp_header is not None and not _HEADER_NAME.fullmatch(timestamp_header):
        raise BadVerification("timestamp_header", "this can't be the name of a header")


def _quoted(verification: Verification) -> str:
    return f"'{verification.scheme}'"


def check_secret(verification: Verification, secret: str) -> None:
    """Raises `BadVerification` for a secret that can't sign. The text has nothing of it."""
    if not secret:
        raise BadVerification("secret", "the secret is empty")
    if verification.scheme == "standard":
        _standard_key(secret)


def check_signature(
    verification: Verification, request: SignedRequest, secrets: Sequence[str], *, now: float
) -> Verified:
    """Raises `BadSignature` unless the request is signed with one of the secrets.

    First the signature is checked, then the time: only who knows a secret learns about clocks.
    """
    claimed = _READERS[verification.scheme](verification, request)
    is_signed = False
    for secret in secrets:
        wanted = _wanted(verification, claimed, secret)
        for signature in claimed.signatures:
            # no early end: how long this takes says nothing about which one fits
            is_signed |= hmac.compare_digest(signature, wanted)
    if not is_signed:
        raise BadSignature("no signature fits any of the secrets")
    timestamp = claimed.timestamp
    if timestamp is not None and abs(now - timestamp) > verification.tolerance_seconds:
        raise BadSignature(
            f"it was signed {now - timestamp:,.0f} s ago;"
            f" tolerance_seconds is {verification.tolerance_seconds:g}"
        )
    return Verified(timestamp, claimed.message_id)


def is_same_secret(token: str, secret: str) -> bool:
    """Whether a token that was sent is the secret; no empty one is.

    Digests of both are compared: comparing texts of different lengths would tell the length.
    """
    digests = [_digest(_TOKEN_KEY, text.encode("utf-8", "replace")) for text in (token, secret)]
    return bool(secret) and hmac.compare_digest(*digests)


def _wanted(verification: Verification, claimed: _Claimed, secret: str) -> bytes:
    """What a signature with this secret is."""
    if not secret:
        raise BadSignature("a secret is empty")
    if verification.scheme == "gitlab":
        return _digest(claimed.content, secret.encode())
    key = _standard_key(secret) if verification.scheme == "standard" else secret.encode()
    return _digest(key, claimed.content)


def _digest(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, sha256).digest()


def _standard_key(secret: str) -> bytes:
    try:
        key = b64decode(secret.removeprefix(STANDARD_PREFIX).encode(), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise BadVerification(
            "secret", f"a secret of Standard Webhooks is base64, usually behind {STANDARD_PREFIX!r}"
        )
    return key


def _read_standard(_: Verification, request: SignedRequest) -> _Claimed:
    message_id = _header(request, "webhook-id")
    seconds = _header(request, "webhook-timestamp")
    signatures: list[bytes] = []
    for part in _header(request, "webhook-signature").split():
        version, _separator, text = part.partition(",")
        if version == "v1":
            signatures += _decoded(text, "base64")
    content = f"{message_id}.{seconds}.".encode() + request.body
    return _Claimed(content, _few(signatures), _timestamp(seconds), message_id)


def _read_github(_: Verification, request: SignedRequest) -> _Claimed:
    return _Claimed(request.body, _prefixed(request, "x-hub-signature-256", "sha256=", "hex"))


def _read_stripe(_: Verification, request: SignedRequest) -> _Claimed:
    times: list[str] = []
    signatures: list[bytes] = []
    for part in _header(request, "stripe-signature").split(","):
        key, _separator, value = part.strip().partition("=")
        if key == "t":
            times.append(value)
        elif key == "v1":
            signatures += _decoded(value, "hex")
    if len(times) != 1:
        raise BadSignature("stripe-signature must have one t=")
    content = f"{times[0]}.".encode() + request.body
    return _Claimed(content, _few(signatures), _timestamp(times[0]))


def _read_slack(_: Verification, request: SignedRequest) -> _Claimed:
    seconds = _header(request, "x-slack-request-timestamp")
    content = f"v0:{seconds}:".encode() + request.body
    signatures = _prefixed(request, "x-slack-signature", "v0=", "hex")
    return _Claimed(content, signatures, _timestamp(seconds))


def _read_gitlab(_: Verification, request: SignedRequest) -> _Claimed:
    """The header is the secret itself: as in `is_same_secret`, digests of both are compared."""
    token = _header(request, GITLAB_TOKEN).encode("utf-8", "surrogatepass")
    return _Claimed(_TOKEN_KEY, (_digest(_TOKEN_KEY, token),))


def _read_hmac(verification: Verification, request: SignedRequest) -> _Claimed:
    header = (verification.header or "").lower()
    signatures = _prefixed(request, header, verification.prefix, verification.encoding)
    if verification.timestamp_header is None:
        before, _separator, after = verification.signed.partition(BODY)
        return _Claimed(before.encode() + request.body + after.encode(), signatures)
    seconds = _header(request, verification.timestamp_header.lower())
    timestamp = _timestamp(seconds)
    before, _separator, after = verification.signed.partition(BODY)
    content = b"".join(
        (
            before.replace(TIMESTAMP, seconds).encode(),
            request.body,
            after.replace(TIMESTAMP, seconds).encode(),
        )
    )
    return _Claimed(content, signatures, timestamp)


_TOKEN_KEY = b"penstock token"
_HEADERS = {
    "standard": "webhook-signature",
    "github": "x-hub-signature-256",
    "stripe": "stripe-signature",
    "slack": "x-slack-signature",
    "gitlab": GITLAB_TOKEN,
}
SIGNATURE_HEADERS = frozenset(_HEADERS.values())
"""Headers that hold a signature or a secret in one of the schemes."""
_READERS: Mapping[str, Callable[[Verification, SignedRequest], _Claimed]] = {
    "standard": _read_standard,
    "github": _read_github,
    "stripe": _read_stripe,
    "slack": _read_slack,
    "gitlab": _read_gitlab,
    "hmac": _read_hmac,
}


def _header(request: SignedRequest, name: str) -> str:
    value = request.headers.get(name)
    if not value:
        raise BadSignature(f"there is no header {name}")
    return value


def _prefixed(request: SignedRequest, name: str, prefix: str, encoding: str) -> tuple[bytes, ...]:
    value = _header(request, name)
    if not value.startswith(prefix):
        raise BadSignature(f"{name} doesn't begin as it must")
    return _few(_decoded(value.removeprefix(prefix), encoding))


def _decoded(text: str, encoding: str) -> Iterator[bytes]:
    """A signature; nothing for what can't be one."""
    if encoding == "hex":
        if _HEX.fullmatch(text):
            yield bytes.fromhex(text)
        return
    try:
        data = b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        return
    # a signature has one spelling: the last character of base64 may have bits that nobody reads
    if b64encode(data).decode() == text:
        yield data


def _few(signatures: Sequence[bytes] | Iterator[bytes]) -> tuple[bytes, ...]:
    few = tuple(signatures)
    if not few:
        raise BadSignature("there is no signature that could fit")
    if len(few) > SIGNATURES_MAX:
        raise BadSignature(f"it has {len(few)} signatures; {SIGNATURES_MAX} are compared at most")
    return few


def _timestamp(text: str) -> float:
    if not _SECONDS.fullmatch(text):
        raise BadSignature("its time isn't a whole number of seconds")
    return float(text)
