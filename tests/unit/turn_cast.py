"""A road whose model is a real adapter against a scripted server, and a way to kill it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.unit.deaths import dying_at

from keepsaid.adapters.models.provider import ProviderChat, build
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import Window
from keepsaid.domain.memory import Candidate, Hit, Injection, Kind, Memory, NewMemory
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.prompt import Json
from keepsaid.domain.receipt import Cause
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.route import Routes
from keepsaid.domain.turn import ClaimedBatch, Recent, ToolClass
from keepsaid.domain.views import TurnStory
from keepsaid.engine.workers import Attempt, RetryPolicy
from keepsaid.pipeline.answering import AgentDeps, PipelineSettings
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake
from keepsaid.pipeline.leasing import Leases, LeaseTerms
from keepsaid.pipeline.prompt.assemble import PromptBudget
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.pipeline.turn.run import TurnLimits
from keepsaid.ports.model import Tool
from keepsaid.services.inbox import ProgressHub
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid.testing.model_script import Script
from keepsaid.testing.model_server import ModelServer

SECRET_WORD = "quetzalcoatl"
WINDOWS = {"chat": Window(0)}


class Remembers:
    """Injects one memory into every turn, and notes what it was told the prompt shows."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.identity = "# SOUL.md\nBe brief."

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:
        self.shown = [record.text for record in (await recent).records]
        new = NewMemory("k", Kind.FACT, f"the word is {SECRET_WORD}", "global", Trust.OWNER)
        hit = Hit(Memory(4711, new, "active", 0), "text", 1, 2.5)
        block = f"[Relevant to this message]\n[Fact] the word is {SECRET_WORD}"
        return Injection(block, (Candidate(hit, True, "shares a word", Cause.RELEVANT),))

    async def read(self) -> str:
        return self.identity


@dataclass
class Stage:
    """A road whose model is a real adapter against a scripted server."""

    server: ModelServer
    chat: ProviderChat
    clock: VirtualClock
    store: InMemoryOperations
    tools: Sequence[Tool] = ()
    limits: TurnLimits = TurnLimits(call_s_max=5)
    budget: PromptBudget = PromptBudget()
    memory: Remembers = field(default_factory=Remembers)
    routes: Routes = Routes()

    def __post_init__(self) -> None:
        self.ids = CountingIds()
        self.hub = ProgressHub()
        self.revive()

    def revive(self) -> None:
        """A new process over the same store."""
        mind = AgentDeps(self.chat, self.memory, self.memory, lambda _: self.tools, self.hub)
        course = PipelineSettings(self.routes, WINDOWS, self.budget, self.limits)
        self.flow = MessagePipeline(self.store, mind, course, self.clock, self.ids)
        self.leases = Leases(self.store, self.clock, self.ids, f"owner-{self.ids.next()}", LeaseTerms())
        self.attempt = Attempt(self.store, self.hub, self.clock, self.ids, RetryPolicy())
        self.door = MessageIntake(self.store, self.clock, self.ids, WINDOWS, IntakeLimits())

    async def say(self, text: str = "hello") -> None:
        origin = Origin("chat", "me", "room", "ann", "Ann", trust=Trust.KNOWN)
        await self.flow.receive(self.door, Inbound(origin, Content(text.encode(), text)))
        await self.flow.route()

    async def work(self) -> str:
        """Claim the next batch and try it once."""
        (lease,) = await self.flow.claim(self.leases, 1)
        claimed = await self.flow.open(lease)
        self.claimed = claimed
        return await self.attempt.at(claimed, lambda: self.flow.answer(claimed))

    async def turn(self) -> TurnStory:
        story = await self.store.turn(self.claimed.turn_id)
        assert story is not None
        return story

    async def replies(self) -> list[StoredReply]:
        return list(await self.store.unseen("chat", "room"))


@asynccontextmanager
async def staged(*reactions: object, **changes: object) -> AsyncIterator[Stage]:
    script = Script(*reactions)  # type: ignore[arg-type]
    async with ModelServer(script) as server:
        chat = ProviderChat("openai/scripted", lambda: build("openai", "scripted", "key", server.url))
        try:
            yield Stage(server, chat, VirtualClock(), InMemoryOperations(), **changes)  # type: ignore[arg-type]
        finally:
            await chat.close()


def a_tool(run: Callable[[dict[str, Json]], str], kind: ToolClass = ToolClass.PURE) -> Tool:
    async def called(arguments: dict[str, Json]) -> str:
        return run(arguments)

    schema: dict[str, Json] = {"type": "object", "properties": {"q": {"type": "string"}}}
    return Tool("look_up", "Look something up", schema, called, kind, serves=Trust.EXTERNAL)


async def killed_at(stage: Stage, point: str, times: int = 1) -> None:
    """Work until the process dies at the n-th passage of a point, then start a new one."""
    with dying_at(point, times):
        await stage.work()
    stage.revive()
    await stage.store.apply(VoidLeases("new owner", stage.clock.now_ms(), "it died", (900, 901)))
