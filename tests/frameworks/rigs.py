"""How a framework is run in tests: its real agent, with a model of a script, and what that model was shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from keepsaid.frameworks.bridge import MemoryCalls


class Way(StrEnum):
    """How a run goes: asked and answered, streamed, or with a call of a tool before the answer."""

    PLAIN = "plain"
    STREAM = "stream"
    TOOL = "tool"


@dataclass(frozen=True)
class Ran:
    """What a run came to: its answer, all that the model was shown in its last request, and what is kept of the run."""

    answer: str
    shown: str
    history: str


class Rig(Protocol):
    """An agent of a framework with the memory of one person, in one conversation. It answers `Noted: WHAT WAS SAID`."""

    @property
    def degraded(self) -> str:
        """Why memory was left out, as the adapter shows it."""

    async def run(self, said: str, way: Way = Way.PLAIN, *, again: bool = False) -> Ran:
        """Say something; `again` says it in the state that the run before it began in, as a retry does."""

    async def fail(self, said: str) -> None:
        """Say something while the model refuses to answer."""


RigOf = Callable[[MemoryCalls, str], Rig]
"""Makes a rig with a memory, in a conversation."""


def noted(said: str) -> str:
    """What the model of the script answers."""
    return f"Noted: {said}"
