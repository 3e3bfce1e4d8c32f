"""Masks: where a text was redacted before."""

from __future__ import annotations

from bisect import bisect_left

from keepsaid.domain.redaction import MASK


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
