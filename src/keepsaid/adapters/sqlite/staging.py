"""Staged deeds of turns and branches: written with what ends them, gone once memory has them."""

from __future__ import annotations

import apsw

from keepsaid.adapters.sqlite.query import every, run
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.staged import StageMemory, read_back, written

SQL = load("staging")


def stage(db: apsw.Connection, deed: StageMemory, turn_id: int) -> None:
    """Write down what a turn, or a branch under its own id, asked memory to do."""
    run(db, SQL["stage"], (turn_id, deed.n, written(deed)))


def staged(db: apsw.Connection, turn_id: int | None) -> tuple[StageMemory, ...]:
    """What a turn asked memory to do and is not known to be done, in order."""
    return tuple(read_back(text) for (text,) in every(db, SQL["staged"], (turn_id,)))


def forget_staged(db: apsw.Connection, turn_id: int) -> int:
    """Nothing is staged any more; returns how many deeds were."""
    return run(db, SQL["forget_staged"], (turn_id,))


def done(db: apsw.Connection, batch_id: int) -> None:
    """The turn that answered a batch has nothing staged any more; before its episode work is cleared."""
    run(db, SQL["done"], (batch_id,))
