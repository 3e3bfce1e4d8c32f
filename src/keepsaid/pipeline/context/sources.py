"""Sources: where the parts of a context come from that are neither the lane's nor memory's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from keepsaid.domain.memory import person_of
from keepsaid.domain.personality import Personality, effective, scopes_of
from keepsaid.domain.scene import Contribution, Passing, Standing
from keepsaid.domain.skill import Skills
from keepsaid.domain.turn import Claimed
from keepsaid.ports.bulletins import Bulletins
from keepsaid.ports.capabilities import Capabilities
from keepsaid.ports.contributor import Contributor
from keepsaid.ports.identity import Identity
from keepsaid.ports.overview import Overview
from keepsaid.ports.side_work import SideWork
from keepsaid.ports.skills import SkillShelf


@dataclass(frozen=True, slots=True)
class Sources:
    """Those that there are; a layer without one is empty."""

    skills: SkillShelf | None = None
    capabilities: Capabilities | None = None
    side_work: SideWork | None = None
    contributors: Sequence[Contributor] = ()
    overview: Overview | None = None
    bulletins: Bulletins | None = None

    async def standing(self, claimed: Claimed, identity: Identity) -> Standing:
        """What stands above the lane's records, as it is when the turn begins."""
        who = await identity.read()
        shelf = await self.skills.read() if self.skills else Skills()
        lines = self.capabilities.lines() if self.capabilities else ()
        told, known = await asyncio.gather(self._told(claimed), self._known(claimed))
        return Standing(who, personality_of(claimed), shelf, lines, known, told)

    async def _told(self, claimed: Claimed) -> str:
        return await self.overview.told(claimed.batch.lane) if self.overview else ""

    async def _known(self, claimed: Claimed) -> str:
        return await self.bulletins.told(claimed) if self.bulletins else ""

    async def passing(self, claimed: Claimed, now_ms: int) -> Passing:
        """What holds for this turn alone."""
        lane = claimed.batch.lane
        work = await self.side_work.lines(lane) if self.side_work else ()
        added: list[Contribution] = []
        for one in self.contributors:
            added += await one.contribute(claimed)
        return Passing(now_ms, work, tuple(added))


def personality_of(claimed: Claimed) -> Personality:
    """The one in force: of the lane, of the one person of a direct chat, of everybody, or the built-in."""
    return effective(scopes_of(claimed.batch.lane, person_in(claimed)), claimed.around.personalities)


def person_in(claimed: Claimed) -> str:
    """The one person of a direct chat; "" where more than one may be heard."""
    origins = [message.inbound.origin for message in claimed.messages]
    people = {person_of(origin) for origin in origins}
    return people.pop() if len(people) == 1 and all(origin.direct for origin in origins) else ""
