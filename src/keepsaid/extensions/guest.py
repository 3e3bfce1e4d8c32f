"""Guests: extensions as they stand in this process, and what is wrong with those that were turned away."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from keepsaid.errors import KeepsaidError
from keepsaid.extensions.discover import Found
from keepsaid.extensions.given import GuestContext
from keepsaid.extensions.manifest import Manifest
from keepsaid.extensions.provided import Provided

_FRAMES_MAX = 20
_REASON_CHARS_MAX = 500


class State(StrEnum):
    """Where an extension stands."""

    OFF = "off"
    FOUND = "found"
    LOADED = "loaded"
    READY = "ready"
    UNREADY = "needs setup"
    ACTIVE = "active"
    STOPPED = "stopped"
    QUARANTINED = "quarantined"


class Phase(StrEnum):
    """What was being done when it failed."""

    MANIFEST = "manifest"
    DEPENDENCIES = "dependencies"
    SETTINGS = "settings"
    IMPORT = "import"
    CREATE = "create"
    INITIALIZE = "initialize"
    PROVIDE = "provide"
    START = "start"
    HEALTH = "health"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an extension is quarantined: in which phase, the reason in a sentence, and where it was raised."""

    phase: Phase
    reason: str
    trace: str = ""


def fault_of(phase: Phase, error: BaseException) -> Fault:
    """The fault that an error is."""
    if isinstance(error, KeepsaidError):
        return Fault(phase, error.what)
    said = " ".join(str(error).split())[:_REASON_CHARS_MAX]
    reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return Fault(phase, reason, "".join(traceback.format_exception(error, limit=-_FRAMES_MAX)))


@dataclass(slots=True)
class Guest:
    """One extension: what was found of it, where it stands, and what it provides."""

    found: Found
    state: State = State.FOUND
    fault: Fault | None = None
    made: Any = None
    context: GuestContext | None = None
    provided: Provided = field(default_factory=Provided)
    needs: tuple[str, ...] = ()
    unwell: int = 0
    took_ms: dict[Phase, float] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Its id."""
        return self.found.id

    @property
    def manifest(self) -> Manifest:
        """Its manifest; only where there is one."""
        assert self.found.manifest is not None, "an extension without a manifest goes nowhere"
        return self.found.manifest

    @property
    def active(self) -> bool:
        """Whether what it provides is to be used."""
        return self.state is State.ACTIVE

    @property
    def why(self) -> str:
        """Why it is not active, for what depends on it."""
        if self.fault is not None:
            return f"it is quarantined ({self.fault.phase}: {self.fault.reason})"
        if self.state is State.UNREADY:
            return f"it has to be set up first: {'; '.join(self.needs)}"
        return f"it is {self.state}"

    def call(self, name: str, *given: Any) -> Callable[[], Awaitable[Any]] | None:
        """One of its methods, to be called; None where it has none of this name."""
        method = getattr(self.made, name, None)
        return None if method is None else lambda: method(*given)
