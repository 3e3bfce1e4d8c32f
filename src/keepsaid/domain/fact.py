"""Facts: what the journal tells of commits and memories, the same from every store. Without words of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain.commits import Commit, TurnCommit
from keepsaid.domain.compaction import CutReason
from keepsaid.domain.lane import Lane
from keepsaid.domain.prompt import Json
from keepsaid.domain.route import Action, Verdict
from keepsaid.domain.session import SessionEnd

TOLD = "memory.told"
"""The name of the note that remembers the last news that was told."""


class Happened(StrEnum):
    """What happened to a memory."""

    SAVED = "saved"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


class News(NamedTuple):
    """One piece: its number, and which memory; `kind` is its kind, `by` the memory that took its place."""

    n: int
    memory_id: int
    what: Happened
    kind: str
    by: int | None = None

    @property
    def mark(self) -> str:
        """What is remembered of it."""
        return f"{self.n}:{self.memory_id}"


@dataclass(frozen=True, slots=True)
class TellNews(Commit[int]):
    """Write news to the journal, in order and each piece once; returns how many were written."""

    news: tuple[News, ...]
    at: int


@dataclass(frozen=True, slots=True)
class DropNews(Commit[int]):
    """Remove news up to a number from the memory store, once it is told."""

    until: int


def untold(news: tuple[News, ...], told: str) -> tuple[News, ...]:
    """What follows the last that was told; all of it, where that is not among it."""
    place = next((n for n, one in enumerate(news, 1) if one.mark == told), 0)
    return news[place:]


ROUTED, STARTED = "batch.routed", "turn.started"
"""Told of together: many come with one commit."""


class Fact(NamedTuple):
    """A topic, what it is about (its correlation id), and the payload."""

    topic: str
    about: str
    payload: Mapping[str, Json]


class Over(StrEnum):
    """Why a turn was abandoned: its batch was dropped, given up, parked, split, or began anew with a newer message."""

    DROPPED = "dropped"
    DEAD = "dead"
    PARKED = "parked"
    INTERRUPTED = "interrupted"
    SPLIT = "split"


OVER: Mapping[str, Over] = {"dead": Over.DEAD, "review": Over.PARKED}
"""Why the turn of a batch is over that is in this state now."""

_REPLIES = {state: f"reply.{state}" for state in ("sent", "unknown", "dead", "not_deliverable")}


def judged(batch_id: int, messages: int, verdict: Verdict, task_id: int | None = None) -> Fact:
    """Messages were put into a batch, or dropped, by a rule."""
    if verdict.action is Action.DROP:
        return dropped(batch_id, messages, verdict.rule)
    payload: dict[str, Json] = {"batch": batch_id, "messages": messages}
    payload |= {"action": str(verdict.action), "rule": verdict.rule}
    return Fact(ROUTED, str(batch_id), payload if task_id is None else {**payload, "task": task_id})


def dropped(batch_id: int, messages: int, rule: str | None = None) -> Fact:
    """A batch is answered by nobody, by a rule or by somebody's word."""
    payload: dict[str, Json] = {"batch": batch_id, "messages": messages}
    return Fact("batch.dropped", str(batch_id), payload if rule is None else {**payload, "rule": rule})


def ended(batch_id: int, state: str) -> Fact | None:
    """A batch is given up, or waits for a person; None for other states."""
    topic = {"dead": "batch.dead", "review": "batch.parked"}.get(state)
    return None if topic is None else Fact(topic, str(batch_id), {"batch": batch_id})


def started(turn_id: int, batch_id: int) -> Fact:
    """A turn began."""
    return Fact(STARTED, str(turn_id), {"turn": turn_id, "batch": batch_id})


def abandoned(turn_id: int, batch_id: int, why: Over) -> Fact:
    """A turn is over, with no answer."""
    return Fact("turn.abandoned", str(turn_id), {"turn": turn_id, "batch": batch_id, "why": str(why)})


def replied(reply_id: int, state: str, made_by: tuple[int | None, int | None], tries: int) -> Fact | None:
    """A reply came to an end, or to a doubt; `made_by` is its turn and batch. None while it is on its way."""
    topic = _REPLIES.get(state)
    if topic is None:
        return None
    named = zip(("turn", "batch"), made_by, strict=True)
    payload: dict[str, Json] = {"reply": reply_id, **{name: made for name, made in named if made is not None}}
    return Fact(topic, str(reply_id), {**payload, "tries": tries})


def compacted(lane: Lane, how: str, span: tuple[int, int, int, int]) -> Fact:
    """Records left a lane's context: by a summary, because they did not fit, or because it begins anew (`how`).

    `span` is the version of its head, the first record that went, the last, and how many messages that were.
    """
    version, first, last, messages = span
    payload: dict[str, Json] = {"lane": list(lane), "version": version, "first": first, "last": last}
    payload["messages"] = messages
    if how == CutReason.RESET:
        return Fact("lane.reset", "", payload)
    return Fact("lane.compacted", "", {**payload, "how": how})


def of_session(what: str, session_id: int, **said: Json) -> Fact:
    """What happened to a session: `started`, `woke`, `sleeping`, `rotated` or `ended`."""
    return Fact(f"session.{what}", str(session_id), {"session": session_id, **said})


def session_over(session_id: int, ending: SessionEnd, first: int, last: int) -> Fact:
    """A session is over: silence ended it, or the lane goes on with another."""
    what = "ended" if ending is SessionEnd.IDLE else "rotated"
    return of_session(what, session_id, reason=str(ending), first=first, last=last)


def answered(commit: TurnCommit) -> Iterator[Fact]:
    """A turn was settled, and commands that it obeyed."""
    payload: dict[str, Json] = {"turn": commit.turn_id, "batch": commit.batch_id, "replied": commit.reply is not None}
    if commit.steered:
        payload["steered"] = list(commit.steered)
    yield Fact("turn.committed", str(commit.turn_id), payload)
    for command in commit.outcome.obeyed:
        told: dict[str, Json] = {"name": command.name, "outcome": command.outcome, "arguments": command.size}
        yield Fact("command.executed", str(commit.turn_id), told)


def read_to(session_id: int, until: int) -> Fact:
    """All that was marked of a session was read, up to a record."""
    return Fact("memory.session_completed", str(session_id), {"session": session_id, "until": until})


def unreadable(session_id: int, error: str) -> Fact:
    """A session is not read any more."""
    return Fact("memory.session_parked", str(session_id), {"session": session_id, "error": error})


def forgot(number: int, counts: Mapping[str, int]) -> Fact:
    """A forgetting is done: how many memories and messages went, by name of the count."""
    gone: dict[str, Json] = {name: counts.get(name, 0) for name in ("memories", "messages")}
    return Fact("memory.forgotten", str(number), {"forgetting": number, **gone})


def of_memory(news: News) -> Fact | None:
    """What happened to a memory; None for one that is forgotten since."""
    if not news.kind:
        return None
    payload: dict[str, Json] = {"memory": news.memory_id, "kind": news.kind}
    if news.what is Happened.SUPERSEDED and news.by is not None:
        payload["by"] = news.by
    return Fact(f"memory.{news.what}", str(news.memory_id), payload)
