"""Contexts: what a prompt costs while two people's years of talk go by, with summaries and with the whole history.

The data set is LoCoMo's file (snap-research/locomo, CC BY-NC 4.0): one of the two is the person, the other the agent.
Every word goes down the product's road; the model says what the data says, and a scripted summariser keeps one line of
each message until its summary is full. Memory brings nothing to mind. Tokens are estimated.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import Window
from keepsaid.domain.context import TAIL_MAX, Made, Sections, extracted, read
from keepsaid.domain.memory import Injection
from keepsaid.domain.message import Content, Inbound, Lane, Origin, Trust
from keepsaid.domain.prompt import Prompt, marks_of, repeated
from keepsaid.domain.route import Routes
from keepsaid.domain.turn import ClaimedBatch, ModelAnswer, Recent
from keepsaid.memory.summaries import Compaction
from keepsaid.pipeline.answering import AgentDeps, PipelineSettings
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake
from keepsaid.pipeline.leasing import Leases, LeaseTerms
from keepsaid.pipeline.prompt.guard import Guard
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.ports.model import Delta, ModelRequest, Summarised, ToSummarise
from keepsaid.services.inbox import ProgressHub
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid.text.tokens import estimate_tokens

LAST = 50
_WINDOWS = {"chat": Window(0)}
_LINE_CHARS = 100


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a person says, and what the agent answers."""

    said: str
    answered: str


def exchanges(conversation: dict[str, Any]) -> Iterator[Exchange]:
    """A conversation of the data set: what each says until the other speaks is one message."""
    person, said, answered = conversation["speaker_a"], "", ""
    sessions = sum(isinstance(value, list) for value in conversation.values())
    for n in range(1, sessions + 1):
        for line in conversation[f"session_{n}"]:
            if (line["speaker"] == person or not said) and answered:
                yield Exchange(said, answered)
                said, answered = "", ""
            if line["speaker"] == person or not said:
                said = f"{said} {line['text']}".strip()
            else:
                answered = f"{answered} {line['text']}".strip()
    if said and answered:
        yield Exchange(said, answered)


class Scripted:
    """Keeps the beginning of every message, and of the summary so far what there is room for."""

    async def summarise(self, given: ToSummarise) -> Summarised:
        """A summary that fills its budget in the end, as a model's does."""
        before = Sections() if not given.earlier else read(given.earlier[-1])
        found = extracted((before,), given.records)
        facts = (*found.facts, *(record.text[:_LINE_CHARS] for record in given.records))
        return Summarised(Sections(found.goals, found.decisions, facts, found.outcomes, found.pending), Made.MODEL, "s")


@dataclass
class Reader:
    """The model: says what the data says, and remembers every prompt it was sent."""

    answers: Iterator[str]
    prompts: list[Prompt] = field(default_factory=list)
    name: str = "bench/scripted"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:  # noqa: ARG002 - the port's signature
        """The agent's next words."""
        self.prompts.append(request.prompt)
        return ModelAnswer(next(self.answers))


class Nothing:
    """No memory, no files."""

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:  # noqa: ARG002
        """Nothing comes to mind."""
        return Injection()

    async def read(self) -> str:
        """No identity."""
        return ""


@dataclass(frozen=True, slots=True)
class Replayed:
    """One conversation: the cost of each prompt and of one with the whole history, and what was repeated of each."""

    tokens: list[int]
    whole: list[int]
    repeated: list[float]
    summaries: int


async def replay(talk: Sequence[Exchange]) -> Replayed:
    """Send a conversation down the road, turn by turn, and summarise the lane after each turn that made it due."""
    store, clock, ids = InMemoryOperations(), VirtualClock(), CountingIds()
    named: list[Lane] = []
    model, nothing = Reader(iter([one.answered for one in talk])), Nothing()
    compaction = Compaction(store, Scripted(), clock, lambda text: text)
    guard = Guard(store, clock, lambda lane, _: named.append(lane))
    mind = AgentDeps(model, nothing, nothing, lambda _: (), ProgressHub(), guard=guard)
    flow = MessagePipeline(store, mind, PipelineSettings(Routes(), _WINDOWS), clock, ids)
    leases = Leases(store, clock, ids, "bench", LeaseTerms())
    door = MessageIntake(store, clock, ids, _WINDOWS, IntakeLimits())
    versions: list[int] = []
    for one in talk:
        origin = Origin("chat", "me", "room", "a", "A", direct=True, trust=Trust.OWNER)
        inbound = Inbound(origin, Content(one.said.encode(), one.said))
        await flow.receive(door, inbound)
        await flow.route()
        (lease,) = await flow.claim(leases, 1)
        versions.append((await store.context(inbound.lane, TAIL_MAX)).version)
        await flow.answer(await flow.open(lease))
        for lane in named:
            await compaction.compact(lane)
        named.clear()
    return _counted(talk, model.prompts, versions)


def _counted(talk: Sequence[Exchange], prompts: Sequence[Prompt], versions: Sequence[int]) -> Replayed:
    tokens = [sum(layer.tokens for layer in prompt.layers) for prompt in prompts]
    whole, told = [], 0
    for one, prompt in zip(talk, prompts, strict=True):
        kept = sum(layer.tokens for layer in prompt.layers if layer.name not in ("summary", "recent"))
        whole.append(kept + told)
        told += estimate_tokens(one.said) + estimate_tokens(one.answered)
    shares = [
        repeated(marks_of(prompts[n - 1]), marks_of(prompts[n])).stable_share
        for n in range(1, len(prompts))
        if versions[n] == versions[n - 1]
    ]
    return Replayed(tokens, whole, shares, versions[-1])


def measure(file: Path) -> dict[str, object]:
    """The largest prompt, the cost of the last turns beside sending the whole history, and what was repeated."""
    data = json.loads((file / "locomo10.json" if file.is_dir() else file).read_text("utf-8"))
    all_ = [asyncio.run(replay(list(exchanges(one["conversation"])))) for one in data]
    last = [sum(one.tokens[-LAST:]) / sum(one.whole[-LAST:]) for one in all_]
    shares = [share for one in all_ for share in one.repeated]
    return {
        "conversations": len(all_),
        "turns": sum(len(one.tokens) for one in all_),
        "prompt_tokens_largest": max(max(one.tokens) for one in all_),
        "prompt_tokens_mean_last_50": round(sum(sum(one.tokens[-LAST:]) for one in all_) / (LAST * len(all_))),
        "whole_history_tokens_mean_last_50": round(sum(sum(one.whole[-LAST:]) for one in all_) / (LAST * len(all_))),
        "share_of_whole_history_last_50": round(sum(last) / len(last), 4),
        "share_of_whole_history_worst": round(max(last), 4),
        "repeated_between_summaries_mean": round(sum(shares) / len(shares), 4),
        "repeated_between_summaries_least": round(min(shares), 4),
        "summaries": sum(one.summaries for one in all_),
    }
