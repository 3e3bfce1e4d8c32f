"""The scene: all that one turn's context is made of, as it was found when the turn began."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.attention import Attention
from keepsaid.domain.context import LaneTail
from keepsaid.domain.memory import Injection
from keepsaid.domain.message import Trust
from keepsaid.domain.personality import BUILT_IN, Personality
from keepsaid.domain.skill import Skills
from keepsaid.domain.turn import Claimed

MEMORY_PRIORITY = 100
"""Where recalled memory stands among what extensions contribute; lower comes earlier (seed 002)."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """What an extension adds to a prompt; a lower `priority` comes earlier and is cut later.

    One that has nothing because something is wrong says what (`missing`). `trust` is as declared.
    """

    name: str
    text: str
    priority: int = MEMORY_PRIORITY
    missing: str = ""
    trust: Trust = Trust.EXTERNAL


@dataclass(frozen=True, slots=True)
class Standing:
    """What changes seldom: files, settings and what is known of people; it stands above the lane's records.

    `session_summary` tells of the other lanes of the conversation. It and the `bulletin` state their trust (`Trusted`);
    without, they count as outside text.
    """

    identity: str = ""
    personality: Personality = BUILT_IN
    skills: Skills = Skills()
    capabilities: tuple[str, ...] = ()
    bulletin: str = ""
    session_summary: str = ""


@dataclass(frozen=True, slots=True)
class Passing:
    """What holds for one turn: the time in milliseconds UTC, side work under way, and contributions."""

    now_ms: int | None = None
    side_work: tuple[str, ...] = ()
    contributions: tuple[Contribution, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """A turn's messages, its lane's summary and records, what came to mind, and what surrounds them.

    `left_out` names the parts that were not ready in time, each with its time limit.
    """

    claimed: Claimed
    tail: LaneTail = LaneTail()
    injection: Injection = Injection()
    standing: Standing = Standing()
    passing: Passing = Passing()
    attention: Attention = Attention()
    left_out: tuple[str, ...] = ()
