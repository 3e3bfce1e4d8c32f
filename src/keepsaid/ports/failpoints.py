"""Failpoints: named no-ops that the crash tests arm (short: every adapter and stage imports it and nothing else)."""

from __future__ import annotations

from collections.abc import Callable

_armed: Callable[[str], None] | None = None


def point(name: str) -> None:
    """Pass a named point of the road; does nothing unless a harness armed it."""
    if _armed is not None:
        _armed(name)


def arm(action: Callable[[str], None] | None) -> None:
    """Let every `point` call `action` with its name, or stop that with None. For `testing.crash` only."""
    global _armed  # noqa: PLW0603 - one switch for the whole process is the point of it
    _armed = action
