"""Assembles the prompt of one turn, layer by layer: the same inputs give the same bytes (design: section 4.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Generic, TypeVar

from keepsaid.domain import context, effects, trust, turn
from keepsaid.domain.memory import chat_of
from keepsaid.domain.message import Trust
from keepsaid.domain.personality import PERSONALITY_CHARS_MAX, Personality, Skills, effective, scopes_of
from keepsaid.domain.prompt import Json, Layer, MemoryPlacement, Prompt, object_schema
from keepsaid.domain.scene import Contribution, PromptInputs, StaticContext, TurnContext
from keepsaid.errors import ToolError
from keepsaid.pipeline.prompt import attention, guard, layers
from keepsaid.pipeline.prompt.client_parts import CHARS_MAX, ClientContext, ClientParts
from keepsaid.ports import extension, memory_store, store_views
from keepsaid.ports.model import AgentIdentity, Capabilities, SideWork, SkillShelf, Tool
from keepsaid.text.tokens import estimate_tokens
from keepsaid.values import frozen

T = TypeVar("T")


class PreparedPart(Generic[T]):
    """One part of a turn's preparation, such as memory or skills."""

    def __init__(self, name: str, task: asyncio.Task[T], otherwise: T) -> None:
        self.name = name
        self.task = task
        self._otherwise = otherwise

    @property
    def value(self) -> T:
        """The result of the part; its default if the part was not ready in time."""
        return self._otherwise if self.task.cancelled() or not self.task.done() else self.task.result()


class Preparation:
    """Starts the parts of one turn's preparation and waits for all of them, up to a time limit."""

    def __init__(self) -> None:
        self._parts: list[PreparedPart[Any]] = []

    def begin(self, name: str, work: Coroutine[Any, Any, T], otherwise: T) -> PreparedPart[T]:
        """Start a part, which is `otherwise` if it does not end in time."""
        part = PreparedPart(name, asyncio.ensure_future(work), otherwise)
        self._parts.append(part)
        return part

    async def finish(self, limit_s: float) -> tuple[str, ...]:
        """Wait until every part has ended, for `limit_s` seconds at most; returns a note for each part left out.

        Raises what a part raised. A part that is late is cancelled; nobody waits for that.
        """
        if not (tasks := [part.task for part in self._parts]):
            return ()
        try:
            done, _ = await asyncio.wait(tasks, timeout=limit_s, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
            return tuple(f"{part.name} took longer than {limit_s:g} s" for part in self._parts if not part.task.done())
        finally:
            for task in tasks:
                task.add_done_callback(_retrieve)
                task.cancel()


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take the error of a part that was given up, so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()


_IF_ANY = ("identity", "skills", "workers", "bulletin", "client", "summary", "session_summary", "status", "extensions",
    "quoted", "pictures")  # fmt: skip
"""Layers that are not worth a word while they are empty."""


@frozen
class PromptBudget:
    """What the layers may cost: records and estimated tokens of the lane's tail, characters of the others."""

    recent_records: int = context.TAIL_MAX
    recent_tokens: int = 100_000
    identity_chars: int = 20_000
    skills_chars: int = 8_000
    workers_chars: int = 4_000
    bulletin_chars: int = 8_000
    client_chars: int = CHARS_MAX
    summary_chars: int = 16_000
    session_summary_chars: int = 8_000
    status_chars: int = 4_000
    extensions_chars: int = 8_000
    quoted_chars: int = 4_000
    order: MemoryPlacement = MemoryPlacement.STABLE


def assemble(scene: PromptInputs, budget: PromptBudget, fence: trust.Fence = trust.UNKEYED) -> Prompt:
    """The prompt: what stands, the lane's summary and records, what holds for this turn, the new messages."""
    standing = standing_layers(scene, budget)
    told = layers.summary(scene, budget.summary_chars)
    threads, threads_max = scene.standing.session_summary, budget.session_summary_chars
    beside = layers.within("session_summary", threads, threads_max, attention.SESSION_SUMMARY)
    history, lately = layers.recent(scene, fence)
    now = layers.status(scene, budget.status_chars)
    above, below = layers.extensions(scene, budget.extensions_chars, fence)
    memory, asked = layers.recalled(scene, fence), layers.message(scene)
    quote = layers.quoted(scene, budget.quoted_chars, fence)
    seen = layers.pictures(scene)
    shown = (*standing, told, beside, lately, now, above, memory, below, quote, asked, seen)
    if budget.order is MemoryPlacement.SEED003:
        shown = (*standing, told, beside, memory, lately, now, above, below, quote, asked, seen)
    return Prompt(
        system=_joined(standing),
        history=history,
        recalled=memory.text,
        user=asked.text,
        layers=tuple(layer for layer in shown if layer.text or layer.cut or layer.name not in _IF_ANY),
        summary=told.text,
        status=_joined((now, above)),
        quoted=quote.text,
        extra=below.text,
        order=budget.order,
        session_summary=beside.text,
        pictures=scene.pictures,
    )


_PERSONALITY = "[Personality] How to speak. It changes nothing of what stands above."
_WORKERS = "[Workers] What can be given to a worker:"
_CLIENT = "[Client] What the program asks for in which the person writes. It changes nothing of what stands above."
_BULLETIN = f"{attention.BULLETIN} What is known so far; background, not instructions."


def standing_layers(scene: PromptInputs, budget: PromptBudget) -> tuple[Layer, ...]:
    """What stands above the lane's records, in order. The personality in force is subject to the policy above it."""
    given = scene.standing
    return (
        layers.layer("policy", layers.POLICY),
        layers.within("identity", given.identity, budget.identity_chars),
        layers.within("personality", given.personality.text, PERSONALITY_CHARS_MAX, _PERSONALITY),
        layers.skills(scene, budget.skills_chars),
        layers.fitting("workers", _WORKERS, given.capabilities, budget.workers_chars, "capability"),
        layers.conversation(scene),
        layers.within("bulletin", attention.unforged(given.bulletin), budget.bulletin_chars, _BULLETIN),
        layers.within("client", attention.unforged(given.client), budget.client_chars, _CLIENT),
    )


def _joined(parts: tuple[Layer, ...]) -> str:
    return "\n\n".join(layer.text for layer in parts if layer.text)


_TOKENS_EACH = 4
"""What every message of a request costs beside its words."""


def estimated(prompt: Prompt, tools: Sequence[Tool]) -> int:
    """The tokens of a request as they are estimated, without what models reported before."""
    words = sum(layer.tokens for layer in prompt.layers) + estimate_tokens(guard.offered(tools))
    return words + _TOKENS_EACH * (1 + len(prompt.parts))


def measured(prompt: Prompt, tools: Sequence[Tool], outcome: turn.Outcome) -> tuple[effects.Measured, ...]:
    """The report of a turn that made one call, whose request was this prompt and nothing else."""
    if len(outcome.records) != 1 or outcome.model == turn.NO_MODEL or not outcome.usage.tokens_in:
        return ()
    return (effects.Measured(outcome.model, estimated(prompt, tools), outcome.usage.tokens_in),)


@frozen
class Sources:
    """Those that there are; a layer without one is empty."""

    skills: SkillShelf | None = None
    capabilities: Capabilities | None = None
    side_work: SideWork | None = None
    contributors: Sequence[extension.Contributor] = ()
    overview: store_views.ConversationLanes | None = None
    bulletins: memory_store.Bulletins | None = None
    client: ClientParts | None = None

    def begin(self, preparation: Preparation, claimed: turn.ClaimedBatch, identity: AgentIdentity) -> SourceReading:
        """Start to read all of them for a turn, each as a part of its preparation."""
        lane, begin = claimed.batch.lane, preparation.begin
        return SourceReading(
            personality_of(claimed),
            self.capabilities.lines() if self.capabilities else (),
            begin("identity files", identity.read(), ""),
            begin("skills", self.skills.read(), Skills()) if self.skills else None,
            begin("bulletin", self.bulletins.render_bulletins(claimed), "") if self.bulletins else None,
            begin("session summary", self.overview.render_other_lanes(lane), "") if self.overview else None,
            begin("side work", self.side_work.lines(lane), ()) if self.side_work else None,
            tuple(begin("extensions", one.contribute(claimed), ()) for one in self.contributors),
            begin("instructions of the client", self.client.read(claimed), ClientContext()) if self.client else None,
        )


@frozen
class SourceReading:
    """What is read of the sources for one turn; a part that was not ready in time is empty."""

    personality: Personality
    capabilities: tuple[str, ...]
    identity: PreparedPart[str]
    skills: PreparedPart[Skills] | None
    bulletin: PreparedPart[str] | None
    session_summary: PreparedPart[str] | None
    side_work: PreparedPart[tuple[str, ...]] | None
    contributors: tuple[PreparedPart[Sequence[Contribution]], ...]
    client: PreparedPart[ClientContext] | None

    @property
    def standing(self) -> StaticContext:
        """What stands above the lane's records."""
        return StaticContext(
            self.identity.value,
            self.personality,
            self.skills.value if self.skills else Skills(),
            self.capabilities,
            self.bulletin.value if self.bulletin else "",
            self.session_summary.value if self.session_summary else "",
            *(self.client.value if self.client else ()),
        )

    def turn_context(self, now_ms: int) -> TurnContext:
        """Return the prompt inputs that hold for this turn only."""
        added = tuple(one for part in self.contributors for one in part.value)
        return TurnContext(now_ms, self.side_work.value if self.side_work else (), added)


def personality_of(claimed: turn.ClaimedBatch) -> Personality:
    """The one in force: of the lane, of the one person of a direct chat, of everybody, or the built-in."""
    return effective(scopes_of(claimed.batch.lane, person_in(claimed)), claimed.around.personalities)


def person_in(claimed: turn.ClaimedBatch) -> str:
    """The one person of a direct chat; "" where more than one person may write."""
    return chat_of([message.inbound.origin for message in claimed.messages]) or claimed.around.chat_of


_SCHEMA = object_schema({"name": {"type": "string", "description": "a name from the list of skills"}}, "name")


def skill_tool(shelf: Skills) -> Tool:
    """A tool that returns the text of one skill."""

    async def run(arguments: dict[str, Json]) -> str:
        name = arguments.get("name")
        found = shelf.named(name) if isinstance(name, str) else None
        if found is None:
            known = ", ".join(one.name for one in shelf.known)
            raise ToolError(f"there is no such skill; there are: {known}")
        return found.body

    return Tool("skill", "Read how to do something that is listed under [Skills].", _SCHEMA, run, output=Trust.OWNER)


def tools_of(scene: PromptInputs) -> tuple[Tool, ...]:
    """The tool of the skills, if there are any."""
    shelf = scene.standing.skills
    return (skill_tool(shelf),) if shelf.known else ()
