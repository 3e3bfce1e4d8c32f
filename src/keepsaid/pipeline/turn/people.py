"""`/join` and `/widen`: who is one person says so in both chats, and who said something lets others hear it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from keepsaid.domain.ids import read
from keepsaid.domain.memory import OWNER, chat_of, person_of
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.widening import Reach, Refusal, WidenMemory
from keepsaid.pipeline.turn.told import REFUSED, Told
from keepsaid.ports.clock import Clock
from keepsaid.ports.hearing import Hearing
from keepsaid.ports.people import People

CODE_MS = 600_000
"""How long a code is good for."""

_REACHED = {
    Reach.CONVERSATION: "in the whole conversation it was said in",
    Reach.PERSON: "in all direct chats of whom it was said by",
    Reach.GLOBAL: "everywhere",
}
_NOT_YOURS = "There is no such memory of what you said."


@dataclass(slots=True)
class _Claim:
    """Who was shown a code, until when it is good, and who said it."""

    person: str
    until: int
    by: str = ""


class Claims:
    """Joins who says the code that the other was shown, each in a direct chat. Codes are kept by this process alone."""

    def __init__(self, people: People, hearing: Hearing, clock: Clock, code: Callable[[], str]) -> None:
        self._people = people
        self._hearing = hearing
        self._clock = clock
        self._code = code
        self._shown: dict[str, _Claim] = {}

    async def join(self, message: Message, arguments: str) -> Told:
        """What `/join`, `/join CODE` or `/join undo` comes to; saying a code again changes nothing."""
        origin = message.inbound.origin
        person = chat_of((origin,))
        if not person or origin.trust is Trust.EXTERNAL:
            return Told("That is for a chat between the two of us, if I know you.", REFUSED)
        if arguments == "undo":
            done = await self._people.split(person)
            return Told("You are a person alone again here.") if done else Told("You are joined with nobody.", REFUSED)
        if person == OWNER:
            return Told("You join people on the command line: keepsaid people join.", REFUSED)
        return await self._said(person, arguments.upper()) if arguments else Told(self._offered(person))

    def _offered(self, person: str) -> str:
        now = self._clock.due_ms()
        self._shown = {code: one for code, one in self._shown.items() if one.until > now and one.person != person}
        code = self._code()
        self._shown[code] = _Claim(person, now + CODE_MS)
        minutes = CODE_MS // 60_000
        return (
            f"Say this to me in your other chat with me, within {minutes} minutes: /join {code}\n"
            "Give it to nobody: whoever says it hears what I keep for you."
        )

    async def _said(self, person: str, code: str) -> Told:
        claim = self._shown.get(code)
        if claim is None or claim.until <= self._clock.due_ms() or claim.by not in ("", person):
            return Told("I gave out no such code, or it is used or too old. /join gives one.", REFUSED)
        if claim.person == person:
            return Told("That is for your other chat: you are yourself here already.", REFUSED)
        claim.by = person
        joined = await self._people.join((claim.person, person), person, self._clock.now_ms())
        if joined is None:
            return Told("One of you is joined with my owner, and only my owner joins others with them.", REFUSED)
        return Told("You are one person to me now, here and there. /join undo takes it back for this chat.")

    async def widen(self, message: Message, arguments: str) -> Told:
        """What `/widen ID conversation|person|global [why]` comes to."""
        origin = message.inbound.origin
        if origin.trust is Trust.EXTERNAL:
            return Told("Only people known to me may do that.", REFUSED)
        named, to, *why = (*arguments.split(maxsplit=2), "")
        memory_id, reach = read("memory", named), Reach(to.lower())
        if memory_id is None:
            return Told(_NOT_YOURS, REFUSED)
        reason = why[0] or "said in a chat"
        word = WidenMemory(memory_id, reach, person_of(origin), reason, self._clock.now_ms())
        done = await self._hearing.widen(word)
        if done in (Refusal.GONE, Refusal.NOT_THEIRS):
            return Told(_NOT_YOURS, REFUSED)
        if isinstance(done, Refusal):
            return Told(f"No: {done}.", REFUSED)
        return Told(f"It may be heard {_REACHED[reach]}.")
