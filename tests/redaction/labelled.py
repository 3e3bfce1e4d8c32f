"""The labelled set: texts with made-up secrets, whose places are known, and ordinary texts.

No secret stands in a file: `{github}` and the like are filled in here, well-formed and always the same, so that
scanners of the repository have nothing to report.
"""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

_HERE = Path(__file__).parent
_PLACE = re.compile(r"\{(=[^{}]+|[a-z][a-z0-9_]*)\}")
_ALNUM = string.ascii_letters + string.digits
_URLSAFE = _ALNUM + "-_"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_WORDS = "abandon ability able about above absent absorb abstract absurd abuse access accident"


class Labelled(NamedTuple):
    """A text, and where its secrets stand."""

    text: str
    secrets: tuple[tuple[int, int], ...] = ()


def _some(letters: str, count: int) -> Callable[[Random], str]:
    return lambda chance: "".join(chance.choices(letters, k=count))


def _password(chance: Random) -> str:
    word = "".join(chance.choices(string.ascii_lowercase, k=chance.randint(4, 8)))
    shapes = (
        f"{word.title()}{chance.randint(10, 9_999)}",
        f"{word}{chance.choice('!#$+*')}{chance.randint(1, 99)}",
        f"{word[:3]}-{chance.randint(100, 999)}-{word[3:]}",
        "".join(chance.choices(_ALNUM, k=11)) + "7a",
    )
    return chance.choice(shapes)


def _opaque(chance: Random) -> str:
    return "".join(chance.choices(_ALNUM, k=chance.randint(24, 48)))


def _joined(*parts: str | Callable[[Random], str]) -> Callable[[Random], str]:
    return lambda chance: "".join(part if isinstance(part, str) else part(chance) for part in parts)


def _base64(count: int) -> Callable[[Random], str]:
    return lambda chance: base64.b64encode(chance.randbytes(count)).decode()


def _jwt(chance: Random) -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"%d"}' % chance.randint(10**8, 10**9), chance.randbytes(32))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _card(prefix: str, size: int, cut: str = "", groups: tuple[int, ...] = (4, 4, 4, 4)) -> Callable[[Random], str]:
    def made(chance: Random) -> str:
        body = prefix + "".join(chance.choices(string.digits, k=size - len(prefix) - 1))
        whole = next(f"{body}{digit}" for digit in range(10) if _luhn(f"{body}{digit}"))
        parts, done = [], 0
        for group in groups:
            parts.append(whole[done : done + group])
            done += group
        return cut.join(parts)

    return made


def _luhn(digits: str) -> bool:
    return sum(sum(divmod(int(one) * (1 + place % 2), 10)) for place, one in enumerate(reversed(digits))) % 10 == 0


def _block(kind: str) -> Callable[[Random], str]:
    def made(chance: Random) -> str:
        body = base64.encodebytes(chance.randbytes(180)).decode()
        return f"-----BEGIN {kind}-----\n{body}-----END {kind}-----"

    return made


_DIGITS, _HEX = string.digits, "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits

MADE: dict[str, Callable[[Random], str]] = {
    "github": _joined("gh", "p_", _some(_ALNUM, 36)),
    "github_fine": _joined("github", "_pat_", _some(_ALNUM, 22), "_", _some(_ALNUM, 59)),
    "gitlab": _joined("gl", "pat-", _some(_URLSAFE, 19), "a"),
    "slack": _joined("xo", "xb-", _some(_DIGITS, 12), "-", _some(_DIGITS, 13), "-", _some(_ALNUM, 24)),
    "slack_app": _joined("xa", "pp-1-A0", _some(_UPPER, 9), "-", _some(_DIGITS, 13), "-", _some(_HEX, 64)),
    "slack_hook": _joined("T0", _some(_UPPER, 8), "/B0", _some(_UPPER, 8), "/", _some(_ALNUM, 24)),
    "openai": _joined("s", "k-", _some(_ALNUM, 20), "T3Blbk", "FJ", _some(_ALNUM, 19), "4"),
    "openai_project": _joined("s", "k-proj-", _some(_URLSAFE, 30), _some(_ALNUM, 44), "5"),
    "anthropic": _joined("sk", "-ant-api03-", _some(_URLSAFE, 92), "AA"),
    "aws_id": _joined("AK", "IA", _some("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    "aws_secret": _joined(_some(_ALNUM, 12), "/", _some(_ALNUM, 13), "+9", _some(_ALNUM, 12)),
    "google": _joined("AI", "za", _some(_URLSAFE, 34), "x"),
    "google_access": _joined("ya", "29.a0", _some(_URLSAFE, 80), "x"),
    "google_secret": _joined("GOC", "SPX-", _some(_URLSAFE, 27), "x"),
    "stripe": _joined("sk", "_live_", _some(_ALNUM, 24)),
    "stripe_hook": _joined("wh", "sec_", _some(_ALNUM, 32)),
    "telegram": _joined(_some("123456789", 10), ":AA", _some(_URLSAFE, 32), "x"),
    "discord": _joined("MT", _some(_ALNUM, 24), ".G", _some(_ALNUM, 5), ".", _some(_ALNUM, 38)),
    "discord_hook": _some(_ALNUM, 68),
    "nsec": _joined("ns", "ec1", _some(_BECH32, 58)),
    "npm": _joined("np", "m_", _some(_ALNUM, 36)),
    "pypi": _joined("py", "pi-AgEIcHlwaS5vcmc", _some(_URLSAFE, 140), "x"),
    "docker": _joined("dck", "r_pat_", _some(_ALNUM, 27)),
    "huggingface": _joined("h", "f_", _some(string.ascii_letters, 34)),
    "groq": _joined("gs", "k_", _some(_ALNUM, 52)),
    "sendgrid": _joined("S", "G.", _some(_ALNUM, 22), ".", _some(_ALNUM, 43)),
    "jwt": _jwt,
    "opaque": _opaque,
    "hex32": _some(_HEX, 32),
    "hex40": _some(_HEX, 40),
    "hex64": _some(_HEX, 64),
    "basic": lambda chance: base64.b64encode(f"bob:{_password(chance)}".encode()).decode(),
    "password": _password,
    "private_key": _block("RSA PRIVATE KEY"),
    "ssh_key": _block("OPENSSH PRIVATE KEY"),
    "visa": _card("4", 16),
    "visa_spaced": _card("4", 16, " "),
    "mastercard_dashed": _card("52", 16, "-"),
    "amex": _card("37", 15, " ", (4, 6, 5)),
    "django": _joined("django-insecure-", _some(_ALNUM + "!@^&*-_", 48), "q1"),
    "base64_32": _base64(32),
    "base64_64": _base64(64),
    "heroku": _joined("HR", "KU-", _some(_HEX, 36)),
    "newrelic": _joined("NR", "AK-", _some(_UPPER, 27)),
    "notion": _joined("nt", "n_", _some(_ALNUM, 46)),
    "linear": _joined("lin", "_api_", _some(_ALNUM, 40)),
    "vault": _joined("hv", "s.", _some(_ALNUM, 24)),
    "shopify": _joined("sh", "pat_", _some(_HEX, 32)),
    "seed": lambda chance: " ".join(chance.sample(_WORDS.split(), 12)),
    "age": _joined("AGE-SECRET", "-KEY-1", _some(_UPPER, 58)),
    "sha": _some(_HEX, 40),
    "short_sha": _some(_HEX, 8),
    "uuid": lambda chance: "-".join(_some(_HEX, size)(chance) for size in (8, 4, 4, 4, 12)),
    "order": _joined(_some("123456789", 1), _some(_DIGITS, 9)),
    "tracking": _joined("1Z", _some(_UPPER, 16)),
    "phone": _joined("+49 170 ", _some(_DIGITS, 7)),
    "phone_dashed": _joined("555-", _some(_DIGITS, 3), "-", _some(_DIGITS, 4)),
    "millis": _joined("17", _some(_DIGITS, 11)),
    "snowflake": _joined("1", _some(_DIGITS, 17)),
    "digits10": _joined("1", _some(_DIGITS, 9)),
    "bech32": _some(_BECH32, 58),
    "ulid": _joined("01", _some("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24)),
}
"""What may stand in braces, and how it is made."""


def secret_texts(rounds: int = 3) -> Iterator[Labelled]:
    """Texts with secrets, each in several fillings."""
    for line in _lines("secrets.txt"):
        for n in range(rounds if "{=" not in line else 1):
            yield _filled(line, Random(f"{line}{n}"))


def ordinary_texts(rounds: int = 3) -> Iterator[Labelled]:
    """Texts without secrets; those with something to fill in, in several fillings."""
    for line in _lines("ordinary.txt"):
        for n in range(rounds if _PLACE.search(line) else 1):
            yield Labelled(_filled(line, Random(f"{line}{n}")).text)


def _lines(name: str) -> Iterator[str]:
    for line in (_HERE / name).read_text("utf-8").splitlines():
        if line and not line.startswith("# "):
            yield line


def _filled(line: str, chance: Random) -> Labelled:
    text, places, done = "", [], 0
    for place in _PLACE.finditer(line):
        text += line[done : place.start()]
        name = place[1]
        made = name[1:] if name.startswith("=") else MADE[name](chance) if name in MADE else place[0]
        if made != place[0]:
            places.append((len(text), len(text) + len(made)))
        text += made
        done = place.end()
    return Labelled(text + line[done:], tuple(places))
