"""Hints: wake-ups between the stages. A lost hint costs a poll interval, never a message."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Hints:
    """One event a stage; set when there may be work for it."""

    route: asyncio.Event = field(default_factory=asyncio.Event)
    work: asyncio.Event = field(default_factory=asyncio.Event)
    deliver: asyncio.Event = field(default_factory=asyncio.Event)
    record: asyncio.Event = field(default_factory=asyncio.Event)
