"""A secret that comes back in another form, or in parts, is hidden as well."""

from __future__ import annotations

import base64
import html
import json
import random
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest

from penstock.worker.redaction import redact

SECRETS = [
    "canary-5f2a-Quite+Long/and=odd",
    'p@ss w/rd <&> "it\'s"',
    "Zürich-Schlüssel-№9-🔑",
    "C:\\keys\\prod.pem",
    "sk-live-0123456789abcdefABCDEF",
    "hunter22",
    (
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggS\n"
        "AgEAAoIBAQC7VJTUt9Us8cKj\n-----END KEY-----"
    ),
]


def basic(secret: str) -> str:
    return "Basic " + base64.b64encode(f"user:{secret}".encode()).decode()


def in_binary(prefix: bytes) -> Callable[[str], str]:
    return lambda secret: base64.b64encode(prefix + secret.encode() + b"\x00\xfftail").decode()


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "quoted for a path": quote,
    "quoted wholly": lambda secret: quote(secret, safe=""),
    "quoted for a query": quote_plus,
    "in a form": lambda secret: urlencode({"key": secret}),
    "quoted in lower case": lambda secret: quote(secret, safe="").lower(),
    "quoted twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "every byte quoted": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "basic credentials": basic,
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64 for URLs": lambda secret: (
        base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")
    ),
    "base64 in a URL": lambda secret: quote(base64.b64encode(secret.encode()).decode(), safe=""),
    "base64 in lines": lambda secret: base64.encodebytes(
        b"x" * 50 + secret.encode() + b"y" * 50
    ).decode(),
    "base64 of binary, no byte before": in_binary(b""),
    "base64 of binary, one byte before": in_binary(b"\xfe"),
    "base64 of binary, two bytes before": in_binary(b"\xfe\x01"),
    "hex": lambda secret: secret.encode().hex(),
    "hex in capitals": lambda secret: secret.encode().hex().upper(),
    "JSON": json.dumps,
    "JSON in JSON": lambda secret: json.dumps(json.dumps({"a": json.dumps(secret)})),
    "JSON in characters": lambda secret: json.dumps(secret, ensure_ascii=False),
    "HTML": html.escape,
    "HTML in numbers": lambda secret: "".join(f"&#{ord(letter)};" for letter in secret),
    "HTML in hex": lambda secret: "".join(f"&#x{ord(letter):X};" for letter in secret),
    "HTML twice": lambda secret: html.escape(html.escape(secret)),
    "XML": lambda secret: secret.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&apos;"),
    "repr": repr,
    "repr of bytes": lambda secret: repr(secret.encode()),
    "ascii": ascii,
    "repr of repr": lambda secret: repr(repr(secret)),
    "in lower case": str.lower,
    "in capitals": str.upper,
    "as a title": str.title,
    "with line ends of Windows": lambda secret: secret.replace("\n", "\r\n"),
}


def longest_part(secret: str, text: str) -> int:
    """How many characters of it in a row are left in a text, in whatever case."""
    secret, text = secret.lower(), text.lower()
    return max(
        (
            end - start
            for start in range(len(secret))
            for end in range(start, len(secret) + 1)
            if secret[start:end] in text
        ),
        default=0,
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:12])
def test_a_secret_is_hidden_in_every_form(secret, form):
    written, around = FORMS[form](secret), FORMS[form]("x" * len(secret.encode()))
    redacted = redact({"text": f"the answer was {written}, sorry", written: [written]}, [secret])
    texts = [redacted["text"], *(key for key in redacted if key != "text")]
    for text in texts:
        assert "***" in text
        windows = {written[start : start + 8] for start in range(len(written) - 7)}
        leaked = [window for window in windows if window in text and window not in around]
        assert not leaked, (leaked, written, text)


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:12])
def test_a_secret_is_hidden_in_any_mixture_of_forms(secret):
    spellings: list[Callable[[str], str]] = [
        str,
        str.swapcase,
        lambda letter: "".join(f"%{byte:02x}" for byte in letter.encode()),
        lambda letter: f"&#{ord(letter)};",
        lambda letter: json.dumps(letter)[1:-1],
        lambda letter: repr(letter.encode())[2:-1],
        html.escape,
    ]
    for seed in range(50):
        rng = random.Random(seed)
        written = "".join(rng.choice(spellings)(letter) for letter in secret)
        assert redact(f"<{written}>", [secret]) == "<***>", (seed, written)


LONG = SECRETS[0]
CUTS = {
    "its end": f"bad token: {LONG[:20]}",
    "its end, with dots": f"bad token '{LONG[:12]}...' was refused",
    "its end, with an ellipsis": f"bad token '{LONG[:9]}…' was refused",
    "its end, in the middle of a text": f"bad token '{LONG[:-4]}' was refused",
    "its beginning": f"{LONG[7:]} is no token",
    "its beginning, by half": f"…{LONG[len(LONG) // 2 :]} is no token",
    "both": f"is {LONG[3:-3]} a token",
    "its end, quoted": f"/login?token={quote(LONG[:24], safe='')}",
    "its end, in lower case": LONG[:20].lower(),
}


@pytest.mark.parametrize("text", CUTS.values(), ids=CUTS)
def test_a_secret_that_was_cut_is_hidden(text):
    assert longest_part(LONG, redact(text, [LONG])) < 8


def test_a_few_characters_of_a_secret_are_a_word_like_any_other():
    text = "a canary is a bird; canary-5 is one too"
    assert redact(text, [LONG]) == text
    assert (
        redact("postgresql is a database", ["postgresql://me:pw@db.internal/app"])
        == "postgresql is a database"
    )


def test_a_secret_of_digits_is_hidden_as_a_number_too():
    assert redact({"pin": 48151623, "n": 7, "yes": True}, ["48151623"]) == {
        "pin": "***",
        "n": 7,
        "yes": True,
    }


def test_nothing_is_hidden_in_what_has_no_secret():
    value = {
        "a": "100 % & \\n + b",
        "b": [1.5, None, "x" * 100],
        "c": base64.b64encode(bytes(range(256))).decode(),
    }
    assert redact(value, SECRETS) == value


@pytest.mark.parametrize(
    "unit",
    [
        "lorem ipsum ",
        "%63%61%6e",
        "\\\\\\\\",
        "&#99;&amp;",
        "canary-5",
        "\\u0063\\x61",
        "AAAA",
        " \n",
    ],
)
def test_the_time_grows_with_the_text_and_not_faster(unit):
    """Ten times the text takes about ten times as long, not a hundred times."""

    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        started = time.perf_counter()
        redact(text, SECRETS[:2])
        return time.perf_counter() - started

    redact("warm", SECRETS[:2])
    small, large = min(seconds(20_000) for _ in range(3)), min(seconds(200_000) for _ in range(2))
    assert large < 40 * small + 0.5
