"""Lines of talk with names, numbers, hashes, addresses and code in them, and no secret: made from a seed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.redaction.shapes import made

_PLACE = re.compile(r"\{([a-z0-9]+)\}")
_LINES = [
    line
    for line in (Path(__file__).parent / "talk.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("# ")
]
_NAMES = "Ann Bob Chiara Dmitri Elif Farid Grzegorz Hana Inès José Katarzyna Łukasz Mirelda Nguyễn Olga Priya"
_WORDS = "harbour lantern kettle garden invoice backlog recall bridge coffee winter ledger canvas orchard"
_CHOICES = {
    "name": _NAMES.split(),
    "word": _WORDS.split(),
    "day": ("2026-11-20", "Monday", "20.11.2026", "11/20/2026", "tomorrow", "Freitag", "mardi", "суббота", "3月5日"),
    "time": ("14:30", "9:05", "18:02:11", "7pm", "2026-11-20T18:02:11Z"),
    "year": ("2024", "2025", "2026"),
}
_SHAPES = {
    "sha": "{h40}",
    "short": "{h8}",
    "order": "4{d9}",
    "tracking": "1Z{u16}",
    "iban": "DE{d2} {d4} {d4} {d4} {d4} {d2}",
    "booking": "{u6}",
    "phone": "+49 170 {d7}",
    "url": "https://example.org/acme/api/pull/{d4}#issuecomment-{d9}",
    "video": "{w11}",
    "document": "1{w43}",
    "picture": "ANd9GcQ_{a46}",
    "base64": "iVBORw0KGgo{b86}",
    "hex64": "{h64}",
    "hex40": "{h40}",
    "hex32": "{h32}",
    "hex16": "{h16}",
    "hex9": "{h9}",
    "hex4": "{h4}",
    "hex2": "{h2}",
    "lower5": "{l5}",
    "uuid": "{h8}-{h4}-{h4}-{h4}-{h12}",
    "ulid": "01{u24}",
    "bech32": "{q58}",
    "number": "{d4}",
    "small": "{d1}",
    "digits6": "{d6}",
    "digits8": "{d8}",
}


def talk(count: int, seed: int = 1) -> Iterator[str]:
    """So many lines, all different where they hold anything made up."""
    chance = Random(seed)

    def filled(place: re.Match[str]) -> str:
        name = place[1]
        return chance.choice(_CHOICES[name]) if name in _CHOICES else made(_SHAPES[name], chance)

    for n in range(count):
        yield _PLACE.sub(filled, _LINES[n % len(_LINES)])
