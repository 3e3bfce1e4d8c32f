"""Recording: messages and task results become episodes, verbatim; memory tools of a turn act once it is committed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from keepsaid.domain import command, effects, ids, learning, memory, redaction, statements, turn, views, visibility
from keepsaid.domain.attributes import value_name
from keepsaid.domain.commits import EpisodesKept
from keepsaid.domain.learning import LearnResult
from keepsaid.domain.message import ANSWERED, Lane, StoredMessage, Trust
from keepsaid.domain.task import ResultsKept, Task, TaskWork
from keepsaid.memory.stating import StatedFacts
from keepsaid.ports import memory_store, runtime, store_views
from keepsaid.ports.runtime import Clock, Redactor, masked_texts
from keepsaid.ports.store import Store
from keepsaid.text.words import fold
from keepsaid.values import frozen

_SPEAKER = frozenset({"i", "me", "myself", "user", "the user", "speaker"})
"""Subjects by which a model means the person it speaks with."""


class Correcting(Protocol):
    """Corrects memories, as `MemoryRevisions` describes it."""

    async def correct(self, memory_id: int, memory: memory.NewMemory, at: int) -> LearnResult: ...

    async def confirm(self, memory_id: int, at: int) -> bool: ...


class StagedRequestExecutor:
    """Executes the memory requests that turns and branches staged; repeating them changes nothing."""

    def __init__(self, learning: memory_store.Learning, truth: Correcting) -> None:
        self._learning = learning
        self._truth = truth

    async def do(self, work: Sequence[effects.StagedRequests | None], at: int) -> None:
        """Execute staged requests, in order. `at` is milliseconds UTC. Raises a StoreError; they are then still due.

        Requests of turns that showed text of outsiders are ignored, whatever the tools answered.
        """
        for staged in filter(None, work):
            if not (fit := [one for one in staged.requests if _trust(staged, one) is not Trust.EXTERNAL]):
                continue
            asked = await runtime.read_sentences(partial(_asks, staged), sum(len(one.text) for one in staged.messages))
            for request in fit:
                await self._do(request, replace(_memory(staged, request), asked=asked), at)

    async def _do(self, request: effects.StageMemory, new: memory.NewMemory, at: int) -> None:
        match request.deed:
            case effects.MemoryAction.SAVE:
                await self._learning.learn([new], at)
            case effects.MemoryAction.CORRECT:
                await self._truth.correct(request.memory_id, new, at)
            case effects.MemoryAction.CONFIRM:
                await self._truth.confirm(request.memory_id, new.said_at)


def _trust(staged: effects.StagedRequests, request: effects.StageMemory) -> Trust:
    """The least trust of who wrote and of the turn when it asked; without the latter what the lane ever held counts."""
    said = visibility.least(message.inbound.origin.trust for message in staged.messages)
    if request.trust is not None:
        return visibility.least((said, request.trust))
    return Trust.EXTERNAL if staged.external else said


def _memory(staged: effects.StagedRequests, request: effects.StageMemory) -> memory.NewMemory:
    """The memory: said by the last sender, in the scope of that message, with the trust of the turn that asked."""
    said = next((one for one in reversed(staged.messages) if not one.inbound.content.event), staged.messages[-1])
    origin = said.inbound.origin
    person = memory.person_of(origin)
    return memory.NewMemory(
        key=f"{staged.by}:{request.n}",
        kind=request.kind,
        text=request.text,
        scope=memory.episode_scope(origin, said.lane),
        trust=_trust(staged, request),
        lane=said.lane,
        speaker=origin.name or origin.sender,
        speaker_id=person,
        chat_of=memory.chat_of([message.inbound.origin for message in staged.messages]),
        subject=request.subject,
        subject_id=person if _is_speaker(request.subject, origin.name or origin.sender) else "",
        attribute=request.attribute,
        value=request.value,
        valid_from=request.valid_from,
        valid_to=request.valid_to,
        said_at=said.received_at,
        importance=memory.IMPORTANCE[request.kind],
        sources=(
            memory.Source("turn", str(staged.turn_id)),
            *(memory.Source("message", str(one.id)) for one in staged.messages),
        ),
        derived=True,
        metadata=_metadata(request, said.lane),
    )


def _asks(staged: effects.StagedRequests) -> bool:
    return any(statements.asks_to_remember(message.text) for message in staged.messages)


def _is_speaker(subject: str, name: str) -> bool:
    """Whether a model means the person it speaks with, by a pronoun or by name."""
    return fold(subject) in _SPEAKER or (subject != "" and value_name(subject) == value_name(name))


def _metadata(request: effects.StageMemory, lane: Lane) -> str:
    is_correction = request.deed is effects.MemoryAction.CORRECT
    return json.dumps({learning.STORED_IN: memory.conversation_scope(lane)}) if is_correction else "{}"


RECORDED_MAX = 50
"""Batches whose episodes are recorded in one go."""


@dataclass(slots=True, eq=False)
class Recorder:
    """Follows the operational store: batches whose episodes are not known to be in memory are its work.

    What the tools of their turns asked for is done with them, and `facts` learns what people plainly state of
    themselves. What it writes holds no secret; where a message does is kept beside it. Memory is written first and the
    work cleared after; all of it is named by what it records, so that doing it again after a crash between the two
    changes nothing. `recorded` counts the batches whose episodes it wrote, `shares` says that other
    processes record too.
    """

    buffer: store_views.BufferView
    memories: memory_store.Memories
    operations: store_views.Operations
    clock: Clock
    redactor: Redactor
    executor: StagedRequestExecutor
    facts: StatedFacts | None = None
    _hint: asyncio.Event | None = field(default=None, init=False)
    _running: int = field(default=0, init=False)
    _left: bool = field(default=True, init=False)
    recorded: int = field(default=0, init=False)
    shares: bool = field(default=False, init=False)

    def watch(self, hint: asyncio.Event, *, shares: bool = False) -> None:
        """Learn of new work from the hint that wakes who records, unless other processes make work too (`shares`)."""
        self._hint, self.shares = None if shares else hint, shares

    @property
    def caught_up(self) -> bool:
        """Whether nothing is due, so that nobody need ask the store."""
        return self._hint is not None and not (self._hint.is_set() or self._running or self._left)

    async def catch_up(self, limit: int = RECORDED_MAX, conversation: str | None = None) -> int:
        """Record up to `limit` batches, oldest first, of one conversation or of all; returns how many were due.

        Another may have cleared them meanwhile. Raises a StoreError when a store refuses; the work is then
        still due.
        """
        self._running += 1
        try:
            self._left = self._left or conversation is None
            if work := await self.buffer.episode_work(limit, conversation):
                await self._record(work)
            if conversation is None:
                self._left = len(work) >= limit
            return len(work)
        finally:
            self._running -= 1

    async def _record(self, work: Sequence[views.EpisodeWork]) -> None:
        said = [episode for batch in work for episode in episodes(batch)]
        fit, found = await _masked(said, self.redactor)
        used = [
            memory.Used(batch.turn_id, batch.used, batch.replied_at or self.clock.now_ms())
            for batch in work
            if batch.turn_id is not None and batch.used
        ]
        if said or used:
            await self.memories.keep(fit, self.clock.now_ms(), used)
        self.recorded += len(work)
        await self.executor.do([one.staged_requests for one in work], self.clock.now_ms())
        if self.facts is not None:
            messages = {f"message:{one.id}": one for batch in work for one in batch.messages}
            stated = [(messages[one.key], one) for one in fit if one.key in messages]
            await self.facts.learn(stated, self.clock.now_ms())
        runtime.point("episodes.kept")
        await self.operations.apply(EpisodesKept(tuple(batch.batch_id for batch in work), _redactions(said, found)))


async def _masked(
    said: Sequence[memory.NewMemory], redactor: Redactor
) -> tuple[list[memory.NewMemory], Sequence[redaction.Masked]]:
    """Return the memories without their secrets, and the places of the secrets."""
    found = await masked_texts(redactor, [one.text for one in said])
    return [replace(one, text=plain.text) for one, plain in zip(said, found, strict=True)], found


def _redactions(said: Sequence[memory.NewMemory], found: Sequence[redaction.Masked]) -> tuple[redaction.Redaction, ...]:
    """The marks of the messages that hold secrets; a reply is ours, and what it holds was said before it."""
    return tuple(
        redaction.Redaction(int(source.ref), plain.marks)
        for episode, plain in zip(said, found, strict=True)
        for source in episode.sources
        if plain.marks and source.kind == "message"
    )


def episodes(work: views.EpisodeWork) -> list[memory.NewMemory]:
    """The episodes of one batch: each message that says something, and the reply a model or program gave."""
    # a command is said to the program alone
    remembered = [one for one in work.messages if one.text.strip() and command.command_in(one) is None]
    said = [_message_episode(message) for message in remembered]
    if work.turn_id is not None and work.messages and work.reply.strip() and work.model != turn.NO_MODEL:
        said.append(_answered(work, work.turn_id))
    return said


def _message_episode(message: StoredMessage) -> memory.NewMemory:
    origin = message.inbound.origin
    who = origin.name or origin.sender, memory.person_of(origin)
    speaker, speaker_id = (memory.ASSISTANT, "") if message.inbound.content.event == ANSWERED else who
    return memory.NewMemory(
        key=f"message:{message.id}",
        kind=memory.Kind.EPISODE,
        text=message.text,
        scope=memory.episode_scope(origin, message.lane),
        trust=visibility.trust_of_words(origin.trust, message.text),
        lane=message.lane,
        speaker=speaker,
        speaker_id=speaker_id,
        chat_of=memory.chat_of((origin,)),
        said_at=message.received_at,
        sources=(memory.Source("message", str(message.id)),),
    )


def _answered(work: views.EpisodeWork, turn_id: int) -> memory.NewMemory:
    """The reply: readable where what it answers is, trusted as its turn, and external when anything in its lane is.

    Other lanes never show external words, and within a lane they live on in the replies to them: so the
    model was shown some if any stood in the lane before.
    """
    lane = work.messages[0].lane
    person = memory.chat_of([one.inbound.origin for one in work.messages])
    return memory.NewMemory(
        key=f"reply:{turn_id}",
        kind=memory.Kind.EPISODE,
        text=work.reply,
        scope=memory.chat_scope(person, lane),
        trust=Trust.EXTERNAL if work.external else work.trust or Trust.KNOWN,
        lane=lane,
        speaker=memory.ASSISTANT,
        chat_of=person,
        said_at=work.replied_at,
        sources=(memory.Source("reply", str(turn_id)),),
    )


KEPT_MAX = 20
"""Results that are kept in one go."""

WORKER = "worker"
"""The speaker of results."""


@frozen
class Results:
    """Follows the operational store: completed tasks whose results are not known to be in memory.

    What a branch asked memory to do is done with its result. Each is named by its task: doing it again after a crash
    changes nothing.
    """

    store: Store
    memories: memory_store.Memories
    clock: Clock
    redactor: Redactor
    executor: StagedRequestExecutor

    async def catch_up(self) -> int:
        """Keep what is due, twenty at most; returns how many. Raises a StoreError: then it is still due."""
        if not (due := await self.store.tasks.results(KEPT_MAX)):
            return 0
        fit, _ = await _masked([episode_of(one) for one in due if one.task.result], self.redactor)
        await self.memories.keep(fit, self.clock.now_ms())
        await self.executor.do([one.staged_requests for one in due], self.clock.now_ms())
        runtime.point("results.kept")
        await self.store.apply(ResultsKept(tuple(one.task.id for one in due)))
        return len(due)


def episode_of(work: TaskWork) -> memory.NewMemory:
    """The result of a task, derived from the messages or the turn it was made of, so that it is forgotten with them."""
    task = work.task
    behind = [memory.Source("message", str(one)) for one in work.messages]
    behind += [] if task.turn_id is None else [memory.Source("turn", str(task.turn_id))]
    return memory.NewMemory(
        key=f"task:{task.id}",
        kind=memory.Kind.EPISODE,
        text=f"Task {ids.show('task', task.id)}{f' ({task.rule})' if task.rule else ''}: {task.result}",
        scope=scope_of(task),
        trust=Trust.EXTERNAL if task.outside else Trust.KNOWN,
        lane=task.lane,
        speaker=WORKER,
        said_at=task.ended_at or task.created_at,
        sources=(memory.Source(memory.TASK, str(task.id)), *behind),
        derived=True,
    )


def scope_of(task: Task) -> str:
    """Its scope: its conversation, where a turn asked for it; else the owner."""
    if task.turn_id is not None and task.lane is not None:
        return memory.conversation_scope(task.lane)
    return memory.person_scope(memory.OWNER)
