"""Windows: search a long text in short steps (one function, which five kinds of search use).

A call of `re` holds the interpreter lock until it returns, on whatever thread: a search of 1 MB takes up to 0.3 s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
