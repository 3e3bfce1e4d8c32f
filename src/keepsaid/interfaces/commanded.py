"""Turns that were commands alone: no model was asked and nothing recalled, so that there is no context to explain."""

from __future__ import annotations

from keepsaid.domain.command import command_in
from keepsaid.domain.views import TurnStory


def commanded(turn: TurnStory) -> str:
    """Why such a turn has no context, in words; empty for every other turn."""
    commands = [command_in(message) for message in turn.messages]
    names = [f"/{command.name}" for command in commands if command is not None]
    if turn.trace or not names or len(names) < len(commands):
        return ""
    said = f"{names[0]} is a command" if len(names) == 1 else f"{', '.join(names)} are commands"
    return f"{said}, carried out without a model and without memory"
