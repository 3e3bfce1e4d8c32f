"""Windows: searches a long text in short steps, and skips what is redacted already."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from keepsaid.domain.redaction import MASK

WINDOW = 65_536
"""In this many characters matches may begin that one call looks for."""

REACH = 8_192
"""The most characters that a match, and what it looks ahead at, may have, unless a caller names more."""


def matches(pattern: re.Pattern[str], text: str, reach: int = REACH, window: int = WINDOW) -> Iterator[re.Match[str]]:
    """The matches that `pattern.finditer` gives.

    No match of the pattern may be empty, or longer than `reach` with what the pattern looks ahead at.
    """
    at, end = 0, len(text)
    for start in range(0, end, window):
        bound = start + window
        for found in pattern.finditer(text, max(at, start), min(bound + reach, end)):
            if found.start() >= bound:
                break
            at = found.end()
            yield found


class Masks:
    """The masks in a text, asked about in any order."""

    def __init__(self, text: str) -> None:
        spans = [one.span() for one in MASK.finditer(text)] if "[redacted: " in text else []
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def touch(self, start: int, end: int) -> bool:
        """Whether any mask stands, in part or whole, between two places."""
        place = bisect_left(self._starts, end) - 1
        return place >= 0 and self._ends[place] > start
