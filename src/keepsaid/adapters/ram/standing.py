"""What stands from turn to turn: how to speak, and how models count tokens."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.ram.state import State
from keepsaid.domain.effects import Measured, SetPersonality
from keepsaid.domain.personality import Personality
from keepsaid.text.tokens import Calibration


def personalities(state: State, scopes: Sequence[str]) -> tuple[Personality, ...]:
    """What is set for these scopes, by scope."""
    return tuple(state.personalities[scope] for scope in sorted({*scopes}) if scope in state.personalities)


def calibration(state: State, model: str) -> Calibration:
    """What a model reported so far."""
    return state.calibrations.get(model, Calibration(model))


def set_personality(state: State, effect: SetPersonality, at: int) -> None:
    """Set it, or take it back."""
    if effect.text:
        state.personalities[effect.scope] = Personality(effect.scope, effect.text, at, effect.by)
    else:
        state.personalities.pop(effect.scope, None)


def measure(state: State, effect: Measured) -> None:
    """Add one report."""
    told = calibration(state, effect.model).heard(effect.estimated, effect.reported)
    state.calibrations[effect.model] = told
