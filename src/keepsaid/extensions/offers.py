"""Offers: what the extensions that are up bring to one turn: tools, and texts for its prompt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence

from keepsaid.domain.scene import Contribution
from keepsaid.domain.text import normalise
from keepsaid.domain.turn import Claimed
from keepsaid.extensions.discover import Source
from keepsaid.extensions.guest import Fault, Guest, Phase
from keepsaid.extensions.trying import tried
from keepsaid.ports.model import Tool

_log = logging.getLogger("keepsaid.extensions")
_LIMIT_S = 0.5
"""How long each may take to add to a prompt."""

_CHARS_MAX = 20_000


class TurnOffers:
    """Tools and contributions of the extensions that are active when a turn begins."""

    def __init__(self, active: Callable[[], Sequence[Guest]], limit_s: float = _LIMIT_S) -> None:
        self.active = active
        self._limit_s = limit_s

    def tools(self, claimed: Claimed) -> tuple[Sequence[Tool], Sequence[Tool]]:
        """The tools of built-in extensions, and those of the others; of two with one name the first stays."""
        core: dict[str, Tool] = {}
        others: dict[str, Tool] = {}
        for guest in self.active():
            known = core if guest.found.source is Source.BUILT_IN else others
            for tool in (*guest.provided.tools, *_of_turn(guest, claimed)):
                known.setdefault(tool.name, tool)
        return tuple(core.values()), tuple(tool for name, tool in others.items() if name not in core)

    def lasting(self) -> Sequence[Tool]:
        """Tools that belong to no turn, so that a worker may use them too."""
        return tuple({tool.name: tool for guest in reversed(self.active()) for tool in guest.provided.tools}.values())

    async def contribute(self, claimed: Claimed) -> tuple[Contribution, ...]:
        """What each adds; one that fails or takes too long is named instead."""
        asked = [self._asked(guest, claimed) for guest in self.active()]
        return tuple(one for several in await asyncio.gather(*asked) for one in several)

    async def _asked(self, guest: Guest, claimed: Claimed) -> list[Contribution]:
        added: list[Contribution] = []

        async def ask() -> None:
            for mark, say in guest.provided.says:
                text = await say(claimed)
                if text:
                    added.append(
                        Contribution(guest.id, normalise(str(text))[:_CHARS_MAX], mark.priority, trust=mark.trust)
                    )
            if guest.provided.contributor is not None:
                added.extend(await guest.provided.contributor.contribute(claimed))

        if not guest.provided.says and guest.provided.contributor is None:
            return []
        fault = await tried(Phase.PROVIDE, ask, self._limit_s)
        if fault is None:
            return added
        _log.warning("the extension %s adds nothing to a prompt: %s", guest.id, fault.reason)
        return [Contribution(guest.id, "", missing=_short(fault))]


def _short(fault: Fault) -> str:
    """Why, without what the error says: it may quote the message."""
    return fault.reason.partition(":")[0]


def _of_turn(guest: Guest, claimed: Claimed) -> Iterator[Tool]:
    if guest.provided.turn_tools is None:
        return
    try:
        yield from guest.provided.turn_tools.tools(claimed)
    except Exception as error:  # noqa: BLE001  # guard: extension - without its tools the turn goes on
        _log.warning("the extension %s has no tools for a turn (%s)", guest.id, type(error).__name__)
