"""The cast of the tests of collection: a store with talk in it, a memory that counts, and an extractor on a string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.unit.echo_cast import NoEchoes

from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.learning import LearnOutcome, LearnResult, Statement
from keepsaid.domain.memory import Kind, NewMemory
from keepsaid.domain.message import Inbound
from keepsaid.domain.session import Passage, Session
from keepsaid.domain.turn import Usage
from keepsaid.engine.collector import Collector, ExtractionPace
from keepsaid.errors import KeepsaidError
from keepsaid.memory.extraction import Collection, ExtractionLimits
from keepsaid.ports.model import Extracted, Extractor
from keepsaid.testing.builders import lane_of, outcome, said
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid_testkit.contracts.store_driver import StoreDriver


class Learnings:
    """A memory that keeps each name once, and can refuse."""

    def __init__(self) -> None:
        self.known: dict[str, NewMemory] = {}
        self.calls = 0
        self.failing: Exception | None = None

    async def learn(self, memories: Sequence[NewMemory], at: int) -> tuple[LearnResult, ...]:
        self.calls += 1
        if self.failing is not None:
            raise self.failing
        for one in memories:
            self.known.setdefault(one.key, one)
        return tuple(LearnResult(n, LearnOutcome.NEW) for n, _ in enumerate(memories, 1))

    @property
    def echoes(self) -> NoEchoes:
        return NoEchoes()

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.known.values()]


@dataclass
class Scripted:
    """Says of each passage that what people told is a fact; or fails."""

    name: str = "scripted/1"
    thorough: bool = True
    failing: list[KeepsaidError | ValueError] = field(default_factory=list)
    asked: list[Passage] = field(default_factory=list)

    async def extract(self, passage: Passage) -> Extracted:
        self.asked.append(passage)
        if self.failing:
            raise self.failing.pop(0)
        facts = [Statement(Kind.FACT, one.text, records=(one.position,)) for one in passage.sources]
        return Extracted(tuple(facts), 1, Usage(10, 5), self.name)


class Scene:
    """A store in memory, and what collects from it."""

    def __init__(self, extractor: Scripted | None = None, reading: ExtractionLimits | None = None) -> None:
        self.operations = InMemoryOperations()
        self.road = StoreDriver(self.operations)
        self.clock = VirtualClock()
        self.ids = CountingIds(100_000)
        self.extractor = extractor or Scripted()
        self.learnings = Learnings()
        self.reading = reading or ExtractionLimits(tries=3)
        self.start()

    def start(self, pace: ExtractionPace | None = None, extractor: Extractor | None = None) -> None:
        """A process begins: whoever collected before is dead."""
        time = self.clock, self.ids
        self.collection = Collection(
            self.operations, self.learnings, extractor or self.extractor, *time, PatternRedactor(), self.reading
        )
        self.collector = Collector(self.collection, pace)

    async def talk(self, *texts: str, room: str = "room", answered: bool = True) -> int:
        """Messages, each with a reply; returns the session's id."""
        for text in texts:
            await self.say(said(text, room), "fine" if answered else "")
        return (await self.session(room)).id

    async def say(self, inbound: Inbound, answer: str = "fine") -> None:
        """One message, and its reply if there is any."""
        at = self.clock.now_ms()
        await self.road.queue(inbound, at)
        claimed = await self.road.claim_one(at)
        end = outcome(answer) if answer else replace(outcome(), reply="", records=())
        settled = TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, at)
        assert await self.operations.apply(settled)

    async def session(self, room: str = "room") -> Session:
        """The newest session of a room."""
        return (await self.operations.sessions(lane_of(room), 1))[0]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a statement does to the store, or reads of it."""
        return self.operations.database.rows(sql)

    async def state(self) -> list[tuple[str, int]]:
        """State and attempts of every session that is not clean."""
        lines = await self.operations.collections(("marked", "claimed", "parked"), 99)
        return [(line.state, line.attempts) for line in lines]
