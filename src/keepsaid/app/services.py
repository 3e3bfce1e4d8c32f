"""The services of an instance, joined to its stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from keepsaid.app.forgetting import backups_of
from keepsaid.config import Config, Home
from keepsaid.engine.forgetter import Forgetter
from keepsaid.ports.redactor import Redactor
from keepsaid.ports.runtime import Clock, Hints
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.services.forgetting import ForgettingService
from keepsaid.services.inbox import InboxService
from keepsaid.services.memories import MemoryService
from keepsaid.services.people import PeopleService


@dataclass(frozen=True, slots=True)
class Services:
    """What people and programs may ask of an instance beside talking to it."""

    inbox: InboxService
    memories: MemoryService
    people: PeopleService
    forgetting: ForgettingService


def services_of(
    place: tuple[Home, Config],
    stores: tuple[Store, MemoryStore],
    system: tuple[Clock, Hints, Redactor],
    forgetter: Forgetter,
    runtime: tuple[Callable[[], bool], asyncio.Event],
) -> Services:
    """The services over these stores; `runtime` says whether the stages are going, and wakes the one that forgets."""
    (home, config), (operations, memories), (clock, hints, redactor) = place, stores, system
    return Services(
        InboxService(operations, clock, hints),
        MemoryService(memories, operations, clock, redactor),
        PeopleService(memories, config, clock),
        ForgettingService(forgetter, memories, partial(backups_of, home, config), runtime),
    )
