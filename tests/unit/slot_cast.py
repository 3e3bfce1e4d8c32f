"""A road with a model that says what it is told to, for tests of questions, focus and quotes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Settle, TakeReplies
from keepsaid.domain.memory import Injection
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.prompt import Json, ToolCall
from keepsaid.domain.reply import Delivered
from keepsaid.domain.route import Routes
from keepsaid.domain.slot import Slot, SlotTerms
from keepsaid.domain.turn import ClaimedBatch, ModelAnswer, Recent
from keepsaid.domain.views import TurnStory
from keepsaid.pipeline.answering import AgentDeps, PipelineSettings
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake
from keepsaid.pipeline.leasing import Leases, LeaseTerms
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.pipeline.tools.conversation import ask_for
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.ports.store import Store
from keepsaid.services.inbox import ProgressHub
from keepsaid.testing.clock import CountingIds, VirtualClock

START = 1_795_000_000_000
WINDOWS = {"chat": Window(0), "hook": Window(0)}


def asking(question: str, kind: str, **more: Json) -> ModelAnswer:
    """The model calls `ask_for`."""
    call = ToolCall("c1", "ask_for", json.dumps({"question": question, "type": kind, **more}))
    return ModelAnswer("", (call,), model="test/model")


@dataclass
class Scripted:
    """Answers what it is told to, "ok" after that, and notes what it was shown."""

    lines: list[ModelAnswer] = field(default_factory=list)
    asked: list[ModelRequest] = field(default_factory=list)
    name: str = "test/model"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """The next line."""
        self.asked.append(request)
        return self.lines.pop(0) if self.lines else ModelAnswer("ok", model=self.name)

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:
        """Nothing comes to mind."""
        await recent
        return Injection(skipped=f"nothing for {claimed.turn_id}")

    async def read(self) -> str:
        """It is nobody in particular."""
        return ""


@dataclass
class Stage:
    """One process over a store; `revive` starts another."""

    store: Store = field(default_factory=InMemoryOperations)
    terms: SlotTerms = SlotTerms()
    model: Scripted = field(default_factory=Scripted)
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(START))
    ids: CountingIds = field(default_factory=CountingIds)

    def __post_init__(self) -> None:
        self.revive()

    def revive(self) -> None:
        """A new process over the same store."""
        mind = AgentDeps(self.model, self.model, self.model, lambda claimed: (ask_for(claimed),), ProgressHub())
        course = replace(PipelineSettings(Routes(), WINDOWS), slots=self.terms)
        self.flow = MessagePipeline(self.store, mind, course, self.clock, self.ids)
        self.leases = Leases(self.store, self.clock, self.ids, f"owner-{self.ids.next()}", LeaseTerms())
        self.door = MessageIntake(self.store, self.clock, self.ids, WINDOWS, IntakeLimits())

    async def hear(self, text: str, who: str = "Ann", marks: ProviderMarks | None = None, **more: str) -> None:
        """A message is received and routed, as it comes in a group."""
        origin = Origin(more.get("channel", "chat"), "me", "room", who.lower(), who, trust=Trust.KNOWN)
        content = Content(text.encode(), text, more.get("event", ""))
        inbound = Inbound(origin, content, marks or ProviderMarks(), topic=more.get("topic"))
        await self.flow.receive(self.door, inbound)
        await self.flow.route()

    async def work(self) -> TurnStory:
        """The next batch is answered."""
        (lease,) = await self.flow.claim(self.leases, 1)
        await self.flow.answer(await self.flow.open(lease))
        turn = await self.store.turn(lease.turn_id)
        assert turn is not None
        return turn

    async def says(self, text: str, who: str = "Ann", marks: ProviderMarks | None = None, **more: str) -> TurnStory:
        """A message is heard and answered."""
        await self.hear(text, who, marks, **more)
        return await self.work()

    async def delivered(self, provider_id: str) -> None:
        """Our last reply arrives under this name."""
        [reply] = await self.store.apply(TakeReplies(("chat",), "me", 9, self.clock.now_ms()))
        settled = Settle(reply.id, reply.fence, Delivered.CONFIRMED, self.clock.now_ms(), provider_id=provider_id)
        assert await self.store.apply(settled)

    async def slots(self, turn: TurnStory) -> Sequence[Slot]:
        """The questions of the lane of a turn, newest first."""
        return await self.store.slots(turn.batch.lane, 9)

    @property
    def quoted(self) -> str:
        """What the last prompt quoted."""
        return self.model.asked[-1].prompt.quoted


def focus(turn: TurnStory) -> tuple[Json, Json]:
    """Kind and place of the focus a trace keeps."""
    assert isinstance(turn.trace, dict)
    about = turn.trace["focus"]
    assert isinstance(about, dict)
    return about["kind"], about["ref"]


def reason(turn: TurnStory) -> str:
    """Why."""
    assert isinstance(turn.trace, dict)
    about = turn.trace["focus"]
    assert isinstance(about, dict)
    return str(about["reason"])
