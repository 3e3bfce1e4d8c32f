"""Inputs of a prompt: everything one turn's context is made of, and what its newest message is about."""

from __future__ import annotations

from keepsaid.domain import context, effects, memory, message
from keepsaid.domain.client_tools import OfferedTool
from keepsaid.domain.files import Picture
from keepsaid.domain.personality import BUILT_IN, Personality, Skills
from keepsaid.domain.slot import Slot
from keepsaid.domain.turn import ClaimedBatch, Focus
from keepsaid.values import frozen


@frozen
class SlotSettlement:
    """What a message did to a question that waited: it answered it, or ended it."""

    slot: Slot
    message_id: int
    effect: effects.FillSlot | effects.ClearSlot


@frozen
class Quote:
    """What a message answers, or replaces (`is_replaced`), in the words of `speaker`, "" for the agent.

    `number` is the place of that message among several.
    """

    text: str
    speaker: str = ""
    number: int = 0
    trust: message.Trust = message.Trust.EXTERNAL
    is_replaced: bool = False


@frozen
class Attention:
    """The focus, what is quoted for the model, and the questions settled before its first step.

    `recorded` is the block an earlier attempt of the turn was shown, so that a retry sends the same bytes.
    """

    focus: Focus = Focus()
    quotes: tuple[Quote, ...] = ()
    settled: tuple[SlotSettlement, ...] = ()
    recorded: str | None = None


MEMORY_PRIORITY = 100
"""Where recalled memory stands among what extensions contribute; lower comes earlier (seed 002)."""


@frozen
class Contribution:
    """What an extension adds to a prompt; a lower `priority` comes earlier and is cut later.

    One that has nothing because something is wrong says what (`missing`). `trust` is as declared.
    """

    name: str
    text: str
    priority: int = MEMORY_PRIORITY
    missing: str = ""
    trust: message.Trust = message.Trust.EXTERNAL


@frozen
class StaticContext:
    """What changes seldom: files, settings and what is known of people; it stands above the lane's records.

    `session_summary` covers the other lanes of the conversation. It and the `bulletin` state their trust (`Trusted`);
    without, they count as outside text. `client` is what the program asks for that the person writes with,
    `client_tools` are those that it offers, `client_tokens_max` how many tokens it takes for an answer (0: any number).
    """

    identity: str = ""
    personality: Personality = BUILT_IN
    skills: Skills = Skills()
    capabilities: tuple[str, ...] = ()
    bulletin: str = ""
    session_summary: str = ""
    client: str = ""
    client_tools: tuple[OfferedTool, ...] = ()
    client_tokens_max: int = 0


@frozen
class TurnContext:
    """Prompt inputs of one turn only: the time in milliseconds UTC, side work under way, and contributions."""

    now_ms: int | None = None
    side_work: tuple[str, ...] = ()
    contributions: tuple[Contribution, ...] = ()


@frozen
class PromptInputs:
    """A turn's messages, its lane's summary and records, what came to mind, and what surrounds them.

    `left_out` names the parts that were not ready in time, each with its time limit; `pictures` came with the messages.
    """

    claimed: ClaimedBatch
    tail: context.LaneTail = context.LaneTail()
    injection: memory.Injection = memory.Injection()
    standing: StaticContext = StaticContext()
    turn: TurnContext = TurnContext()
    attention: Attention = Attention()
    left_out: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
