"""Regular expressions that are compiled when they are first used.

A large expression takes a millisecond to compile, and a command that starts uses few of those it imports.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import Pattern


class _LazyPattern:
    """The attributes of a compiled pattern, each kept once it was read, so that later calls cost nothing more."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern; called for an attribute that was not read before."""
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found

    def __repr__(self) -> str:
        return f"lazy({self._source!r}, {self._flags})"


def lazy(source: str, flags: int = 0) -> Pattern[str]:
    """The pattern `source`, compiled when one of its methods is first called; an error in it is raised there.

    Its methods are those of `re.Pattern`. Functions of `re` that take a pattern refuse it.
    """
    made: Any = _LazyPattern(source, flags)
    pattern: Pattern[str] = made
    return pattern
