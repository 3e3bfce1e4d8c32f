"""Amounts in words: spans of time, numbers with their nouns, and counts by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def duration(ms: float | None) -> str:
    """A span of time for people: `80 ms`, `4.2 s`, `3 m 20 s`, `2 h 5 m`, `3 d 4 h`."""
    if ms is None:
        return "-"
    if ms < 1_000:
        return f"{max(0, ms):.0f} ms"
    seconds = ms / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = int(seconds // 60), int(seconds // 3_600)
    if hours < 1:
        return f"{minutes} m {int(seconds % 60)} s"
    return f"{hours} h {minutes % 60} m" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 message`, `2,041 messages`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def tallied(counts: Mapping[str, int], order: Sequence[str] = ()) -> str:
    """Counts by name: those named first even when they are none, then every other."""
    names = [*order, *sorted(set(counts) - set(order))]
    return "   ".join(f"{name} {counts.get(name, 0):,}" for name in names) or "none"
