"""Fences: outside text in a prompt stands between two lines with a number that the text itself cannot contain."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

from keepsaid.text.normal import heading, opens

DATA, END = "[Data", "[End of data"
_NUMBER_BYTES = 4
_ENDS = re.compile(r"\[\s{0,8}end\s{1,8}of\s{1,8}data[^\[\]\n]{0,40}\]", re.IGNORECASE)
_FOLD = "  "


@dataclass(frozen=True, slots=True)
class Fence:
    """Writes texts as data. `key` is a secret of the home; the same text gets the same number in every prompt.

    The number is a keyed hash of the text. A text that named its own number would have another one, and without the key
    nobody can try.
    """

    key: bytes = b""

    def number(self, text: str) -> str:
        """The number of the fence around a text: eight hexadecimal digits."""
        return blake2b(text.encode("utf-8", "replace"), key=self.key, digest_size=_NUMBER_BYTES).hexdigest()

    def data(self, what: str, text: str) -> tuple[str, str, str]:
        """A text as data: the line before it, which says what it is, the text, and the line that ends it."""
        number = self.number(text)
        return f"{DATA} {number}: {what}]", enclosed(text), ending(number)

    def within(self, label: str, text: str, about: str = "") -> str:
        """A text below a label of ours, such as "[Quoted", and above the line that ends it."""
        number = self.number(text)
        return f"{label} {number}{about}]\n{enclosed(text)}\n{ending(number)}"


UNKEYED = Fence()
"""The fence of a home without a secret, such as one in memory."""


def ending(number: str) -> str:
    """The line that ends the fence with this number."""
    return f"{END} {number}]"


def enclosed(text: str) -> str:
    """A text of which no line looks as if a fence began or ended there, whatever its number."""
    if not opens(text):
        return text
    return "".join(_folded(line) if opens(line) else line for line in text.splitlines(keepends=True))


def _folded(line: str) -> str:
    plain = _ENDS.sub("(end of data)", line)
    return _FOLD + plain if heading(line).startswith((DATA.casefold(), END.casefold())) else plain
