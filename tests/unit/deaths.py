"""Deaths of the process, at the passage of a named point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from keepsaid.ports.runtime import arm


class Killed(BaseException):
    """The process died here."""


@contextmanager
def dying_at(point: str, passage: int = 1) -> Iterator[None]:
    """Within it the process dies, at the n-th passage of a point."""
    left = passage

    def kill(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if not left:
                raise Killed

    arm(kill)
    try:
        with pytest.raises(Killed):
            yield
    finally:
        arm(None)
