"""A world in which things are said, collected, edited, merged and forgotten, on either operational store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories, open_stores
from keepsaid.domain.forgetting import ForgetSelector, ForgetTargets, Forgetting
from keepsaid.domain.learning import Statement
from keepsaid.domain.memory import OWNER, Kind, Memory, NewMemory, Source, person_scope
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.session import Invalidate, Passage
from keepsaid.domain.turn import Usage
from keepsaid.engine.collector import Collector
from keepsaid.engine.forgetter import Forgetter
from keepsaid.memory.extraction import Collection
from keepsaid.memory.recording import Recorder, StagedRequestExecutor
from keepsaid.ports.model import Extracted, Extractor
from keepsaid.testing.builders import ACCOUNT, CHANNEL, lane_of
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid_testkit.contracts.memories import AUDIT
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

STORES = ("memory", "file")


class EachSentence:
    """Extracts one fact from each message, and one more from each pair of neighbours."""

    name = "each/1"
    thorough = True

    async def extract(self, passage: Passage) -> Extracted:
        """Returns the statements; a sentence that stands alone becomes a fact in its own words."""
        told = passage.sources
        facts = [Statement(Kind.FACT, one.text, records=(one.position,)) for one in told]
        facts += [
            Statement(Kind.DECISION, f"{one.text} with {two.text}", records=(one.position, two.position))
            for one, two in zip(told[::2], told[1::2], strict=False)
        ]
        return Extracted(tuple(facts), 1, Usage(1, 1), self.name)


class World:
    """The stores of a home, with a recorder, a collector and a forgetter."""

    def __init__(self, operations: ContractStore, memories: SqliteMemories) -> None:
        self.operations = operations
        self.memories = memories
        self.clock = VirtualClock(1_000)
        self.ids = CountingIds(10_000_000)
        self.road = StoreDriver(operations)
        redactor = PatternRedactor()
        deeds = StagedRequestExecutor(memories, memories.revisions)
        self.recorder = Recorder(operations, memories, operations, self.clock, redactor, deeds)
        self.read_with(EachSentence())
        self.forgetter = Forgetter((operations, memories), self.clock, self.ids)

    def continue_from(self, first_id: int) -> None:
        """Number what is said from now on from this id, as a process does that was started again."""
        self.road = StoreDriver(self.operations, first_id)

    def read_with(self, extractor: Extractor) -> None:
        """Collect with this extractor."""
        time = self.clock, self.ids
        self.collection = Collection(self.operations, self.memories, extractor, *time, PatternRedactor())
        self.collector = Collector(self.collection)

    async def say(self, text: str, room: str = "room", sender: str = "ann", answer: str = "fine") -> int:
        """Walk a message to the end of its turn, and record it; returns its id."""
        await self.clock.advance(1_000)
        at = self.clock.now_ms()
        origin = Origin(CHANNEL, ACCOUNT, room, sender=sender, name=sender.title(), trust=Trust.KNOWN)
        queued = await self.road.queue(Inbound(origin, Content(text.encode(), text)), at)
        await self.road.answer(await self.road.claim_one(at), answer, at)
        await self.recorder.catch_up()
        return queued.first.id

    async def collect(self, room: str = "room") -> None:
        """Read all of a room that nobody has read yet."""
        await self.mark(room)
        await self.collector.tick()

    async def mark(self, room: str = "room") -> None:
        """Let all of a room be due to be read."""
        newest = next(iter(await self.operations.sessions(lane_of(room), 1)), None)
        if newest is None:  # all of it was forgotten, and with it its name
            return
        tail = await self.operations.context(lane_of(room), 1)
        await self.operations.apply(Invalidate(newest.id, tail.head, "asked", self.clock.now_ms()))

    async def known(self) -> Sequence[Memory]:
        """All that is remembered, also what was superseded or merged."""
        return await self.memories.find(AUDIT, (), 1_000)

    async def texts(self) -> list[str]:
        """The texts of all that is remembered and no reply."""
        return sorted(one.text for one in await self.known() if not one.new.key.startswith("reply:"))

    async def preview(self, wish: ForgetSelector) -> ForgetTargets:
        """Returns what a wish would take."""
        return await self.forgetter.find_targets(wish)

    async def forget(self, wish: ForgetSelector, undo_ms: int = 0) -> Forgetting | None:
        """Forget, to the end."""
        begun = await self.forgetter.forget(wish, OWNER, undo_ms)
        return None if begun is None else await self.forgetter.finish(begun.id)

    async def edit(self, memory_id: int, text: str) -> int:
        """Put a memory right, as its owner; returns the id of the new one, 0 when it was refused."""
        await self.clock.advance(1_000)
        now = self.clock.now_ms()
        key = f"edit:{memory_id}:{now}"
        scope, source = person_scope(OWNER), (Source("person", key),)
        word = NewMemory(key, Kind.FACT, text, scope, Trust.OWNER, speaker_id=OWNER, said_at=now, sources=source)
        return (await self.memories.revisions.correct(memory_id, word, now)).memory_id

    async def said(self, message_id: int) -> str:
        """The text of a message, "" once it is forgotten."""
        return (await self.road.story(message_id)).message.text


@asynccontextmanager
async def world(kind: str, folder: Path) -> AsyncIterator[World]:
    """A world on the operational store of this kind, with its memory in a folder."""
    async with AsyncExitStack() as closing:
        if kind == "memory":
            memories = await open_memories(folder / "memory.db", CountingIds())
            closing.push_async_callback(memories.close)
            yield World(InMemoryOperations(), memories)
        else:
            paths = folder / "buffer.db", folder / "memory.db"
            operations, memories = await open_stores(*paths, CountingIds(), closing)
            yield World(operations, memories)
