"""`/wrong`: a memory that came to mind was wrong; it is left out of the lane's next turns, until that is withdrawn."""

from __future__ import annotations

from typing import Protocol

from keepsaid.domain.effects import Effect
from keepsaid.domain.feedback import JudgeMemory, Reminded
from keepsaid.domain.ids import read, show
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import person_of
from keepsaid.domain.message import Message
from keepsaid.domain.receipt import candidate_in
from keepsaid.domain.text import cut
from keepsaid.pipeline.turn.told import ASKED, REFUSED, Told
from keepsaid.ports.store_views import LaneView, ReceiptView, ScheduleView, TaskView

_TEXT_CHARS = 100


class Receipts(ReceiptView, LaneView, Protocol):
    """What lanes were shown, and what is done for them."""

    @property
    def tasks(self) -> TaskView:
        """Tasks."""
        ...

    @property
    def schedules(self) -> ScheduleView:
        """What comes at a time."""
        ...


class Wrong:
    """Says what a person's word about a memory comes to; the turn's commit writes it down."""

    def __init__(self, receipts: Receipts) -> None:
        self._receipts = receipts

    async def told(self, message: Message, arguments: str) -> Told:
        """What `/wrong`, `/wrong N`, `/wrong ID` or `/wrong undo [ID]` comes to."""
        verb, _, which = arguments.partition(" ") if arguments.startswith("undo") else ("mark", "", arguments)
        by = person_of(message.inbound.origin)
        if verb == "undo":
            return await self._withdrawn(message.lane, which.strip(), by)
        return await self._marked(message.lane, which, by)

    async def _marked(self, lane: Lane, which: str, by: str) -> Told:
        reminded = await self._receipts.reminded(lane)
        if reminded is None:
            return Told("No memory came to mind in the last turns here.", REFUSED)
        if not which and len(reminded.memories) > 1:
            return Told(await self._listed(reminded), ASKED)
        memory_id = _meant(reminded, which)
        if memory_id is None:
            known = await self._known(lane, which)
            if known is None:
                return Told(f"{which} is not among them.\n{await self._listed(reminded)}", REFUSED)
            turn_id, memory_id = known
        else:
            turn_id = reminded.turn_id
        text = await self._text(turn_id, memory_id)
        effects: tuple[Effect, ...] = (JudgeMemory(turn_id, memory_id, by),)
        return Told(f"Left out here from now on: {text}\n/wrong undo brings it back.", effects=effects)

    async def _known(self, lane: Lane, which: str) -> tuple[int, int] | None:
        """An earlier turn of the lane that was shown the memory named so."""
        memory_id = read("memory", which) if not which.isdecimal() else None
        uses = () if memory_id is None else await self._receipts.uses(memory_id, 0)
        return next(((use.turn_id, memory_id or 0) for use in uses if use.lane == lane), None)

    async def _withdrawn(self, lane: Lane, which: str, by: str) -> Told:
        standing = [said for said in await self._receipts.wrong(lane) if which in ("", show("memory", said.memory_id))]
        if not standing:
            return Told("Nothing here is said to be wrong." if not which else f"{which} is not left out here.", REFUSED)
        newest = standing[0]
        text = await self._text(newest.turn_id, newest.memory_id)
        again = [said for said in standing if said.memory_id == newest.memory_id]
        effects = tuple(JudgeMemory(said.turn_id, said.memory_id, by, "withdraw") for said in again)
        return Told(f"May come to mind again: {text}", effects=effects)

    async def _listed(self, reminded: Reminded) -> str:
        texts = [await self._text(reminded.turn_id, memory_id) for memory_id in reminded.memories]
        return "\n".join(("Which one? /wrong and its number:", *(f"{n}. {text}" for n, text in enumerate(texts, 1))))

    async def _text(self, turn_id: int, memory_id: int) -> str:
        """A memory as its turn was shown it, with its name."""
        story = await self._receipts.turn(turn_id)
        found = candidate_in(story.trace, memory_id) if story else None
        words = f"[{found['kind']}] {cut(' '.join(str(found['text']).split()), _TEXT_CHARS)} " if found else ""
        return f"{words}({show('memory', memory_id)})"


def _meant(reminded: Reminded, which: str) -> int | None:
    """The memory of the last turn that was meant by its number, by its name, or as the only one."""
    if which.isdecimal():
        return reminded.memories[int(which) - 1] if 0 < int(which) <= len(reminded.memories) else None
    named = read("memory", which) if which else reminded.memories[0]
    return named if named in reminded.memories else None
