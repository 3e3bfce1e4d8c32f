"""The buffer, dispatch and outbox once more, as plain lists: slow, obvious, and what the stores are held against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from keepsaid.domain.batch import Window
from keepsaid.domain.commits import ATTEMPTS_MAX
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message
from keepsaid.domain.route import Action

WINDOW = Window(window_ms=100, quiet_ms=60, wait_ms_max=300, count_max=4, chars_max=40)
RULES = {"noise": Action.DROP, "work": Action.SPAWN, "vip": Action.FORWARD, "talk": Action.FORWARD}
"""A message is routed by its first word."""


@dataclass
class Work:
    """A batch."""

    id: int
    lane: Lane
    messages: list[Message]
    rule: str
    ready_at: int
    later: bool = False
    state: str = "queued"
    forwarded: bool = True
    requeued: bool = False
    priority: int = 0
    fence: int = 0
    attempts: int = 0
    crashes: int = 0
    deferrals: int = 0
    alone: bool = False
    owner: str = ""
    lease_until: int = 0
    turn_id: int | None = None
    steps: list[str] = field(default_factory=list)
    replies: list[Letter] = field(default_factory=list)

    @property
    def order(self) -> tuple[int, int, int]:
        """Best priority, then arrival, then age of the batch."""
        return self.priority, self.messages[0].received_at, self.id

    def leave(self, state: str) -> None:
        """The lease ends."""
        self.state, self.owner, self.alone = state, "", False
        if state not in ("queued", "leased"):
            self.turn_id, self.steps = None, []


@dataclass
class Letter:
    """A reply."""

    id: int
    room: str
    next_at: int
    state: str = "pending"
    fence: int = 0
    owner: str = ""
    possible_duplicate: bool = False


@dataclass
class Waiting:
    """Messages, those that wait, and the batches of the others."""

    messages: list[Message] = field(default_factory=list)
    batches: list[Work] = field(default_factory=list)
    episodes_due: set[int] = field(default_factory=set)
    closed: dict[Lane, tuple[list[Message], int]] = field(default_factory=dict)
    """Windows a start has closed: for the messages that waited then, until others come."""

    @property
    def lanes(self) -> list[Lane]:
        """In the order of their first messages."""
        return list(dict.fromkeys(message.lane for message in self.messages))

    def work_of(self, lane: Lane) -> list[Work]:
        """The batches of a lane, in order."""
        return sorted((w for w in self.batches if w.lane == lane), key=lambda w: w.messages[0].number)

    def waiting(self, lane: Lane) -> list[Message]:
        """The messages of a lane that no batch holds."""
        held = {message.id for work in self.work_of(lane) for message in work.messages}
        return [message for message in self.messages if message.lane == lane and message.id not in held]

    def closes_at(self, lane: Lane) -> int | None:
        """When the lane's window closes; None when nothing waits. A full one has closed before now."""
        waiting = self.waiting(lane)
        if not waiting:
            return None
        if len(waiting) >= WINDOW.count_max or sum(len(message.text) for message in waiting) >= WINDOW.chars_max:
            return -1
        times = [message.received_at for message in waiting]
        closes = WINDOW.due_at(min(times), max(times))
        known, closed_at = self.closed.get(lane, ([], 0))
        return min(closes, closed_at) if known == waiting else closes

    def due(self, now: int) -> dict[Lane, list[Message]]:
        """Lanes to be routed, with what waits in them."""
        closing = [(lane, self.closes_at(lane)) for lane in self.lanes]
        return {lane: self.waiting(lane) for lane, at in closing if at is not None and at <= now}

    def route(self, batch_id: int, messages: Sequence[Message], now: int) -> None:
        """Extend the batch before, or make one."""
        rule = first_word(messages[0])
        priority = min(message.inbound.priority for message in messages)
        before = next((w for w in self.batches if w.messages[-1].number == messages[0].number - 1
                       and w.lane == messages[0].lane), None)  # fmt: skip
        if RULES[rule] is Action.FORWARD and before is not None and self._takes(before, rule, messages):
            before.messages += messages
            before.priority = min(before.priority, priority)
            return
        work = Work(batch_id, messages[0].lane, list(messages), rule, now, priority=priority)
        if RULES[rule] is not Action.FORWARD:
            work.state = "dropped" if RULES[rule] is Action.DROP else "done"
            work.forwarded = False
        if RULES[rule] is Action.SPAWN:
            self.episodes_due.add(batch_id)
        self.batches.append(work)

    def _takes(self, work: Work, rule: str, messages: Sequence[Message]) -> bool:
        untouched = work.state == "queued" and not (work.attempts or work.crashes or work.deferrals or work.turn_id)
        all_of_it = [*work.messages, *messages]
        fits = len(all_of_it) <= WINDOW.count_max and sum(len(m.text) for m in all_of_it) <= WINDOW.chars_max
        return untouched and fits and work.forwarded and work.rule == rule


@dataclass
class Plan(Waiting):
    """What must be so."""

    replies: list[Letter] = field(default_factory=list)
    departed: list[Letter] = field(default_factory=list)
    spoken: dict[Lane, list[str]] = field(default_factory=dict)

    def leased(self) -> list[Work]:
        """Batches in flight."""
        return [work for work in self.batches if work.state == "leased"]

    def ready(self) -> list[Work]:
        """The first open batch of each lane in which none is leased."""
        open_work = [[w for w in self.work_of(lane) if w.state in ("queued", "leased")] for lane in self.lanes]
        return [work[0] for work in open_work if work and all(w.state == "queued" for w in work)]

    def claimable(self, now: int, limit: int) -> list[Work]:
        """What a claim must lease."""
        leased = self.leased()
        for work in self.ready():
            work.later = work.later and work.ready_at > now
        due = sorted((work for work in self.ready() if not work.later), key=lambda work: work.order)
        if any(work.alone for work in leased):
            return []
        loners = [work for work in due if work.crashes >= 2]
        if loners and not leased:
            return loners[:1]
        suspects = [work for work in leased + due if work.crashes == 1]
        return [work for work in due if work.crashes == 0 or (work.crashes == 1 and work is suspects[0])][:limit]

    def lease(self, work: Work, owner: str, turn_id: int, lease_until: int) -> None:
        """Put it in flight."""
        work.state, work.owner, work.lease_until, work.later = "leased", owner, lease_until, False
        work.fence += 1
        work.alone = work.crashes >= 2
        work.turn_id = work.turn_id or turn_id

    def commit(self, work: Work, answer: str) -> None:
        """Its turn ends well."""
        self.spoken.setdefault(work.lane, []).extend([*(message.text for message in work.messages), answer])
        self.episodes_due.add(work.id)
        work.leave("done")

    def write(self, work: Work, reply_id: int, now: int) -> None:
        """A reply or notice to its conversation."""
        letter = Letter(reply_id, work.lane.conversation, now)
        work.replies.append(letter)
        self.replies.append(letter)

    def void(self, owner: str, now: int, reply_id: int) -> list[int]:
        """The process died; the batches that are dead now."""
        dead = []
        for work in self.ready():
            work.later = False
        closing = {lane: self.closes_at(lane) for lane in self.lanes}
        self.closed = {lane: (self.waiting(lane), min(at, now)) for lane, at in closing.items() if at is not None}
        for work in self.leased():
            if work.owner == owner:
                continue
            work.ready_at = now
            work.crashes += 1
            work.attempts += work.alone
            work.leave("dead" if work.attempts >= ATTEMPTS_MAX else "queued")
            if work.state == "dead":
                dead.append(work.id)
                self.write(work, reply_id, now)
        for letter in self.replies:
            if letter.state == "sending" and letter.owner != owner:
                letter.state = "unknown"
            if letter.state in ("pending", "sending", "unknown"):
                letter.next_at = min(letter.next_at, now)
        return dead

    def sendable(self, now: int, limit: int) -> list[Letter]:
        """The first unsettled reply of each room, if it is due."""
        firsts: dict[str, Letter] = {}
        for letter in self.replies:
            if letter.state in ("pending", "sending", "unknown"):
                firsts.setdefault(letter.room, letter)
        due = [letter for letter in firsts.values() if letter.state == "pending" and letter.next_at <= now]
        return sorted(due, key=lambda letter: (letter.next_at, letter.id))[:limit]


def first_word(message: Message) -> str:
    """The rule of a message."""
    return message.text.split()[0]


def runs(messages: Iterable[Message]) -> list[list[Message]]:
    """Neighbours of one rule, within the window's bounds, as a router would cut them."""
    cut: list[list[Message]] = []
    for message in messages:
        last = cut[-1] if cut else []
        fits = len(last) < WINDOW.count_max and sum(len(m.text) for m in [*last, message]) <= WINDOW.chars_max
        if last and fits and first_word(last[0]) == first_word(message):
            last.append(message)
        else:
            cut.append([message])
    return cut
