"""`/forget`: the owner has something forgotten for good, once he was told what would go and said yes."""

from __future__ import annotations

from keepsaid.domain.command import command_in
from keepsaid.domain.forgetting import Wanted, Wish
from keepsaid.domain.ids import read, show
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import person_of
from keepsaid.domain.message import Message, Trust
from keepsaid.pipeline.turn.told import ASKED, REFUSED, Told
from keepsaid.ports.forgetting import Forgets
from keepsaid.ports.store_views import LaneView

_THAT = "that"
_YES = "yes"


class Forget:
    """Says what a wish to forget would take, and has it forgotten when that is confirmed."""

    def __init__(self, lanes: LaneView, forgets: Forgets) -> None:
        self._lanes = lanes
        self._forgets = forgets

    async def told(self, message: Message, arguments: str) -> Told:
        """What `/forget that`, `/forget ID` or `/forget ID yes` comes to."""
        origin = message.inbound.origin
        if origin.trust is not Trust.OWNER or not origin.direct:
            return Told("Only the owner may have something forgotten, in a chat between the two of us.", REFUSED)
        name, _, sure = arguments.partition(" ")
        if name == _THAT:
            name = await self._last(message.lane)
        if not name:
            return Told("Say what: /forget that for what you said last, or /forget and the id of a memory.", REFUSED)
        wish = _wish(name)
        if sure.strip() == _YES:
            done = await self._forgets.forget(wish, person_of(origin))
            return Told("It is forgotten.") if done else Told(f"There is no {name} any more.", REFUSED)
        wanted = await self._forgets.wanted(wish)
        if not (wanted.memories or wanted.messages):
            return Told(f"There is no {name}.", REFUSED)
        return Told(f"{taken(wanted)} To forget it for good: /forget {name} yes", ASKED)

    async def _last(self, lane: Lane) -> str:
        """The last message that the newest settled turn of a lane answered; "" where that was a command."""
        number = await self._lanes.last_turn(lane)
        story = None if number is None else await self._lanes.turn(number)
        said = [one for one in story.messages if command_in(one) is None] if story else []
        return show("message", said[-1].id) if said else ""


def taken(wanted: Wanted) -> str:
    """How much goes, in words."""
    counts = {
        "memories": len(wanted.memories),
        "messages": len(wanted.messages),
        "replies": len(wanted.turns),
        "traces": len(wanted.traces),
    }
    said = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    return f"That takes {said}."


def _wish(name: str) -> Wish:
    message = read("message", name) if name.startswith("msg_") else None
    memory = read("memory", name) if message is None else None
    return Wish(() if memory is None else (memory,), () if message is None else (message,))
