"""What the tests of the library share: a look into the buffer's file from outside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

Change = Callable[..., list[tuple[Any, ...]]]


def outside(home: Path) -> Change:
    """Reads or changes the buffer's file of a home, as another program would."""

    def run(statement: str, *bound: object) -> list[tuple[Any, ...]]:
        with closing(apsw.Connection(str(home / "data" / "buffer.db"))) as db:
            db.set_busy_timeout(2_000)
            return db.execute(statement, bound).fetchall()

    return run
