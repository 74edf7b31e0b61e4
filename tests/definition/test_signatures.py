"""Signatures of webhooks, with the examples that the senders publish."""

from __future__ import annotations

import hmac
from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.definition.signatures import (
    BadSignature,
    BadVerification,
    SignedRequest,
    Verification,
    check_secret,
    check_signature,
    check_verification,
)

NOW = 1_700_000_000.0
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
    b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
    b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
    b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

# What the senders' own documentation has: the scheme, a secret, the headers, the body, the time.
PUBLISHED = {
    "Standard Webhooks": (
        "standard",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        b'{"test": 2432232314}',
        1614265330.0,
    ),
    "GitHub": (
        "github",
        "It's a Secret to Everybody",
        {
            "x-hub-signature-256": "sha256="
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        },
        b"Hello, World!",
        NOW,
    ),
    "Slack": (
        "slack",
        "8f742231b10e8888abcd99yyyzzz85a5",
        {
            "x-slack-request-timestamp": "1531420618",
            "x-slack-signature": "v0="
            "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
        SLACK_BODY,
        1531420618.0,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_examples_that_senders_publish_are_valid(name: str) -> None:
    scheme, secret, headers, body, now = PUBLISHED[name]
    verification = Verification(scheme=scheme, secret="S")  # type: ignore[arg-type]
    check_secret(verification, secret)
    check_signature(verification, SignedRequest(headers, body), [secret], now=now)

    for other_body in (body + b" ", b""):
        with pytest.raises(BadSignature):
            check_signature(verification, SignedRequest(headers, other_body), [secret], now=now)


def _digest(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, sha256).digest()


def _hex(key: str, content: bytes) -> str:
    return _digest(key.encode(), content).hex()


BODY = '{"id": "evt_1", "é": 1}'.encode()
STANDARD_KEY = b"0123456789abcdef01234567"
STANDARD_SECRET = "whsec_" + b64encode(STANDARD_KEY).decode()
SECRET = "a secret of thirty characters."


def _signed(scheme: str, seconds: int, secret: str = SECRET, body: bytes = BODY) -> dict[str, str]:
    """The headers of a request that is signed, made without the code under test."""
    if scheme == "standard":
        content = b"msg_1." + str(seconds).encode() + b"." + body
        signature = b64encode(_digest(STANDARD_KEY, content)).decode()
        return {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(seconds),
            "webhook-signature": f"v1,{signature}",
        }
    if scheme == "stripe":
        signature = _hex(secret, f"{seconds}.".encode() + body)
        return {"stripe-signature": f"t={seconds},v1={signature},v0={'0' * 64}"}
    if scheme == "slack":
        signature = _hex(secret, f"v0:{seconds}:".encode() + body)
        return {"x-slack-request-timestamp": str(seconds), "x-slack-signature": f"v0={signature}"}
    if scheme == "github":
        return {"x-hub-signature-256": f"sha256={_hex(secret, body)}"}
    if scheme == "gitlab":
        return {"x-gitlab-token": secret}
    assert scheme == "hmac"
    signature = b64encode(_digest(secret.encode(), f"{seconds}/".encode() + body)).decode()
    return {"x-signature": f"s={signature}", "x-time": str(seconds)}


def _verification(scheme: Any, **fields: Any) -> Verification:
    if scheme == "hmac":
        fields = {
            "header": "X-Signature",
            "prefix": "s=",
            "encoding": "base64",
            "signed": "{timestamp}/{body}",
            "timestamp_header": "X-Time",
            **fields,
        }
    return Verification(scheme=scheme, secret="S", **fields)


SCHEMES = ["standard", "github", "stripe", "slack", "gitlab", "hmac"]
TIMED = ["standard", "stripe", "slack", "hmac"]


def _own_secret(scheme: str) -> str:
    return STANDARD_SECRET if scheme == "standard" else SECRET


def _other_secret(scheme: str) -> str:
    return "whsec_" + b64encode(b"another").decode() if scheme == "standard" else "another"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_signed_request_is_valid_with_its_secret_and_no_other(scheme: str) -> None:
    verification = _verification(scheme)
    check_verification(verification)
    request = SignedRequest(_signed(scheme, int(NOW)), BODY)
    own, other = _own_secret(scheme), _other_secret(scheme)

    # while a secret is replaced, both count, in either order
    for secrets in ([own], [other, own], [own, other]):
        check_signature(verification, request, secrets, now=NOW)
    for secrets in ([other], [other, other], []):
        with pytest.raises(BadSignature):
            check_signature(verification, request, secrets, now=NOW)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_empty_secret_verifies_nothing(scheme: str) -> None:
    verification = _verification(scheme)
    headers = _signed(scheme, int(NOW), secret="")
    with pytest.raises(BadVerification):
        check_secret(verification, "")
    with pytest.raises(BadSignature):
        check_signature(verification, SignedRequest(headers, BODY), [""], now=NOW)


@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme != "gitlab"])
def test_a_body_that_was_changed_by_one_bit_is_refused(scheme: str) -> None:
    headers = _signed(scheme, int(NOW))
    for i in range(len(BODY)):
        changed = BODY[:i] + bytes([BODY[i] ^ 1]) + BODY[i + 1 :]
        with pytest.raises(BadSignature):
            check_signature(
                _verification(scheme),
                SignedRequest(headers, changed),
                [_own_secret(scheme)],
                now=NOW,
            )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_request_without_one_of_its_headers_is_refused(scheme: str) -> None:
    headers = _signed(scheme, int(NOW))
    for name in headers:
        for incomplete in ({**headers, name: ""}, {k: headers[k] for k in headers if k != name}):
            with pytest.raises(BadSignature):
                check_signature(
                    _verification(scheme),
                    SignedRequest(incomplete, BODY),
                    [_own_secret(scheme)],
                    now=NOW,
                )


@pytest.mark.parametrize("scheme", TIMED)
def test_a_request_counts_only_near_the_time_of_its_signature(scheme: str) -> None:
    verification = _verification(scheme, tolerance_seconds=60)
    request = SignedRequest(_signed(scheme, int(NOW)), BODY)
    secrets = [_own_secret(scheme)]
    for late in (-60, 0, 60):
        check_signature(verification, request, secrets, now=NOW + late)
    for late in (-61, 61, 86_400):
        with pytest.raises(BadSignature, match="tolerance_seconds is 60"):
            check_signature(verification, request, secrets, now=NOW + late)


@pytest.mark.parametrize("scheme", TIMED)
def test_a_time_that_was_replaced_is_refused(scheme: str) -> None:
    headers = _signed(scheme, int(NOW))
    later = {
        name: value.replace(str(int(NOW)), str(int(NOW) + 1)) for name, value in headers.items()
    }
    assert later != headers
    with pytest.raises(BadSignature, match="no signature fits"):
        check_signature(
            _verification(scheme), SignedRequest(later, BODY), [_own_secret(scheme)], now=NOW
        )


def test_who_knows_no_secret_isnt_told_that_a_request_is_too_old() -> None:
    request = SignedRequest(_signed("stripe", 1), BODY)
    with pytest.raises(BadSignature, match="no signature fits"):
        check_signature(_verification("stripe"), request, ["another"], now=NOW)


def test_the_id_of_a_standard_webhook_is_signed() -> None:
    headers = _signed("standard", int(NOW))
    verification = _verification("standard")
    request = SignedRequest(headers, BODY)
    verified = check_signature(verification, request, [STANDARD_SECRET], now=NOW)
    assert verified.message_id == "msg_1"

    other = SignedRequest({**headers, "webhook-id": "msg_2"}, BODY)
    with pytest.raises(BadSignature):
        check_signature(verification, other, [STANDARD_SECRET], now=NOW)


def test_any_of_several_signatures_of_a_request_may_fit() -> None:
    wrong = b64encode(bytes(32)).decode()
    headers = _signed("standard", int(NOW))
    own = headers["webhook-signature"]
    verification = _verification("standard")
    for signatures in (f"v1,{wrong} {own}", f"{own} v1,{wrong}", f"v1a,{wrong} v1,??? {own}"):
        request = SignedRequest({**headers, "webhook-signature": signatures}, BODY)
        check_signature(verification, request, [STANDARD_SECRET], now=NOW)

    many = SignedRequest({**headers, "webhook-signature": f"v1,{wrong} " * 16 + own}, BODY)
    with pytest.raises(BadSignature, match="17 signatures"):
        check_signature(verification, many, [STANDARD_SECRET], now=NOW)


@pytest.mark.parametrize(
    ("scheme", "name", "value"),
    [
        ("github", "x-hub-signature-256", "sha1={signature}"),
        ("github", "x-hub-signature-256", "sha256=é"),
        ("github", "x-hub-signature-256", "sha256={signature}, sha256={signature}"),
        ("stripe", "stripe-signature", "t=,v1={signature}"),
        ("stripe", "stripe-signature", "t=1,t=2,v1={signature}"),
        ("stripe", "stripe-signature", "t=1,v0={signature}"),
        ("stripe", "stripe-signature", "t=-1,v1={signature}"),
        ("stripe", "stripe-signature", "t=1e9,v1={signature}"),
        ("stripe", "stripe-signature", "t=١٢,v1={signature}"),
        ("slack", "x-slack-signature", "{signature}"),
        ("slack", "x-slack-request-timestamp", "now"),
        ("gitlab", "x-gitlab-token", "half \ud800"),
    ],
)
def test_headers_that_make_no_sense_are_refused(scheme: str, name: str, value: str) -> None:
    headers = _signed(scheme, int(NOW))
    headers[name] = value.replace("{signature}", "0" * 64)
    with pytest.raises(BadSignature):
        check_signature(_verification(scheme), SignedRequest(headers, BODY), [SECRET], now=NOW)


@given(st.sampled_from(SCHEMES), st.text(), st.binary(max_size=100))
def test_no_header_raises_anything_else(scheme: str, value: str, body: bytes) -> None:
    for name in _signed(scheme, int(NOW)):
        headers = {**_signed(scheme, int(NOW)), name: value}
        try:
            check_signature(
                _verification(scheme),
                SignedRequest(headers, body),
                [_other_secret(scheme)],
                now=NOW,
            )
        except BadSignature as error:
            assert not value.strip() or len(value) < 8 or value not in str(error)  # noqa: PT017
        else:
            raise AssertionError("a request with another secret was let in")


def test_what_an_hmac_signs_is_as_its_settings_say() -> None:
    plain = Verification(scheme="hmac", secret="S", header="X-Sum")
    check_verification(plain)
    request = SignedRequest({"x-sum": _hex(SECRET, BODY)}, BODY)
    check_signature(plain, request, [SECRET], now=NOW)

    # a body that looks like a placeholder stays as it is
    tricky = b"{timestamp}{body}"
    verification = _verification("hmac", encoding="hex", signed="{timestamp}:{body}:{timestamp}")
    content = b"12:{timestamp}{body}:12"
    headers = {"x-signature": f"s={_hex(SECRET, content)}", "x-time": "12"}
    check_signature(verification, SignedRequest(headers, tricky), [SECRET], now=12.0)


@pytest.mark.parametrize(
    ("field", "verification"),
    [
        ("secret", Verification(scheme="github", secret="")),
        ("secret", Verification(scheme="github", secret=())),
        ("secret", Verification(scheme="github", secret=("A", ""))),
        ("secret", Verification(scheme="github", secret=("A",) * 6)),
        ("tolerance_seconds", Verification(scheme="slack", secret="S", tolerance_seconds=0)),
        ("tolerance_seconds", Verification(scheme="slack", secret="S", tolerance_seconds=3601)),
        (
            "tolerance_seconds",
            Verification(scheme="slack", secret="S", tolerance_seconds=float("nan")),
        ),
        ("header", Verification(scheme="github", secret="S", header="X-Sum")),
        ("signed", Verification(scheme="github", secret="S", signed="{body}.")),
        ("header", Verification(scheme="hmac", secret="S")),
        ("header", Verification(scheme="hmac", secret="S", header="X Sum")),
        ("signed", _verification("hmac", signed="{timestamp}")),
        ("signed", _verification("hmac", signed="{timestamp}{body}{body}")),
        ("signed", _verification("hmac", signed="{timestamp}.{id}.{body}")),
        ("timestamp_header", _verification("hmac", signed="{body}")),
        ("timestamp_header", _verification("hmac", timestamp_header=None)),
        ("timestamp_header", _verification("hmac", timestamp_header="a b")),
    ],
)
def test_settings_that_verify_nothing_are_refused(field: str, verification: Verification) -> None:
    with pytest.raises(BadVerification) as raised:
        check_verification(verification)
    assert raised.value.field == field


def test_a_standard_secret_must_be_base64_and_is_never_quoted() -> None:
    with pytest.raises(BadVerification) as raised:
        check_secret(_verification("standard"), "whsec_not base64!")
    assert "not base64" not in str(raised.value)


def test_headers_with_a_signature_or_a_secret_are_known() -> None:
    assert _verification("gitlab").secret_headers == {"x-gitlab-token"}
    assert _verification("hmac").secret_headers == {"x-signature"}
