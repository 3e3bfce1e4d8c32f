"""`/join` and `/widen`: who is one person says so in both chats, and who said something lets others hear it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from keepsaid.domain.ids import read
from keepsaid.domain.memory import OWNER, chat_of, person_of
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.note import Note
from keepsaid.domain.text import digest
from keepsaid.domain.widening import Reach, Refusal, WidenMemory
from keepsaid.pipeline.turn.told import REFUSED, Told
from keepsaid.ports.memory_store import Hearing, People
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import Notes

CODE_MS = 600_000
"""How long a code is good for."""

_REACHED = {
    Reach.CONVERSATION: "in the whole conversation it was said in",
    Reach.PERSON: "in all direct chats of whom it was said by",
    Reach.GLOBAL: "everywhere",
}


def _name(what: str, of: str) -> str:
    return f"{what} {digest(what, of).hex()}"


_NOT_YOURS = "There is no such memory of what you said."


class _Claim(NamedTuple):
    """Who was shown a code, until when it is good, and who said it."""

    person: str
    until: int
    by: str = ""


class Claims:
    """Joins who says the code that the other was shown, each in a direct chat.

    A code outlasts a restart; what is noted is not the code, but what it comes to when it is said.
    """

    def __init__(self, people: People, hearing: Hearing, clock: Clock, code: Callable[[], str], notes: Notes) -> None:
        self._people = people
        self._hearing = hearing
        self._clock = clock
        self._code = code
        self._notes = notes

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
        return await self._said(person, arguments.upper()) if arguments else await self._offered(person)

    async def _offered(self, person: str) -> Told:
        code = self._code()
        await self._note(code, _Claim(person, self._clock.due_ms() + CODE_MS))
        minutes = CODE_MS // 60_000
        return Told(
            f"Say this to me in your other chat with me, within {minutes} minutes: /join {code}\n"
            "Give it to nobody: whoever says it hears what I keep for you."
        )

    async def _note(self, code: str, claim: _Claim) -> None:
        now, name = self._clock.due_ms(), _name("code", code)
        await self._notes.apply(Note(name, json.dumps(claim), claim.until, now))
        await self._notes.apply(Note(_name("last code", claim.person), name, claim.until, now))

    async def _shown(self, code: str) -> _Claim | None:
        """What was noted of a code; None for none, and for one after which its person was shown another."""
        now, name = self._clock.due_ms(), _name("code", code)
        noted = await self._notes.note(name, now)
        claim = _Claim(*json.loads(noted)) if noted else None
        last = "" if claim is None else await self._notes.note(_name("last code", claim.person), now)
        return claim if last == name else None

    async def _said(self, person: str, code: str) -> Told:
        claim = await self._shown(code)
        if claim is None or claim.by not in ("", person):
            return Told("I gave out no such code, or it is used or too old. /join gives one.", REFUSED)
        if claim.person == person:
            return Told("That is for your other chat: you are yourself here already.", REFUSED)
        await self._note(code, claim._replace(by=person))
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
