"""What stands from turn to turn: how to speak, and how models count tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite.query import every, one
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.effects import Measured, SetPersonality
from keepsaid.domain.personality import Personality
from keepsaid.text.tokens import Calibration

SQL = load("standing")


def personalities(db: apsw.Connection, scopes: Sequence[str]) -> tuple[Personality, ...]:
    """What is set for these scopes, by scope."""
    found = [Personality(*row) for row in every(db, SQL["personalities"], (json.dumps(scopes),))]
    return tuple(sorted(found, key=lambda each: each.scope))


def calibration(db: apsw.Connection, model: str) -> Calibration:
    """What a model reported so far."""
    row = one(db, SQL["calibration"], (model,))
    return Calibration(*row) if row else Calibration(model)


def calibrations(db: apsw.Connection) -> tuple[Calibration, ...]:
    """What every model reported so far; a row for each."""
    return tuple(Calibration(*row) for row in every(db, SQL["calibrations"]))


def set_personality(db: apsw.Connection, effect: SetPersonality, at: int) -> None:
    """Set it, or take it back."""
    if effect.text:
        db.execute(SQL["set_personality"], (effect.scope, effect.text, at, effect.by))
    else:
        db.execute(SQL["reset_personality"], (effect.scope,))


def measure(db: apsw.Connection, effect: Measured) -> None:
    """Add one report."""
    told = calibration(db, effect.model).heard(effect.estimated, effect.reported)
    db.execute(SQL["calibrate"], (told.model, told.estimated, told.reported))
