"""The buffer, dispatch and outbox once more, as plain lists: slow, obvious, and what the stores are held against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from keepsaid.domain.batch import TrialEvidence, Window
from keepsaid.domain.message import Lane, StoredMessage
from keepsaid.domain.route import Action

WINDOW = Window(window_ms=100, quiet_ms=60, wait_ms_max=300, count_max=4, chars_max=40)
RULES = {"noise": Action.DROP, "work": Action.SPAWN, "vip": Action.FORWARD, "talk": Action.FORWARD}
"""A message is routed by its first word."""


@dataclass
class Work:
    """A batch."""

    id: int
    lane: Lane
    messages: list[StoredMessage]
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
    evidence: TrialEvidence = TrialEvidence()
    charges: int = 0
    second_chance: bool = False
    owner: str = ""
    lease_until: int = 0
    turn_id: int | None = None
    steps: list[str] = field(default_factory=list)
    unrepeatable: list[int] = field(default_factory=list)
    replies: list[Letter] = field(default_factory=list)
    steered: int | None = None
    steered_at: int = 0
    parked_with: int | None = None
    ended_at: int = 0
    turned: bool = False
    pruned: bool = False

    @property
    def chars(self) -> int:
        """How much it holds."""
        return sum(len(message.text) for message in self.messages)

    @property
    def untouched(self) -> bool:
        """Whether nobody has begun with it."""
        return self.state == "queued" and not (
            self.attempts or self.crashes or self.deferrals or self.turn_id or self.steered
        )

    @property
    def seen_to(self) -> int:
        """The last step that is finished."""
        return max((n for n, state in enumerate(self.steps, 1) if state == "finished"), default=-1)

    @property
    def order(self) -> tuple[int, int, int]:
        """Best priority, then arrival, then age of the batch."""
        return self.priority, self.messages[0].received_at, self.id

    def leave(self, state: str) -> None:
        """The lease ends."""
        self.state, self.owner, self.alone = state, "", False
        if state not in ("queued", "leased"):
            self.forget_turn()

    def clear(self, attempts: int = 0, crashes: int = 0) -> None:
        """No death of the process speaks against it any more."""
        self.attempts, self.crashes, self.evidence, self.charges = attempts, crashes, TrialEvidence(), 0

    def forget_turn(self) -> None:
        """Its turn is over."""
        self.turn_id, self.steps, self.unrepeatable = None, [], []


@dataclass
class Letter:
    """A reply."""

    id: int
    room: str
    next_at: int
    turn_id: int | None = None
    state: str = "pending"
    fence: int = 0
    owner: str = ""
    possible_duplicate: bool = False


@dataclass
class Waiting:
    """Messages, those that wait, and the batches of the others."""

    messages: list[StoredMessage] = field(default_factory=list)
    batches: list[Work] = field(default_factory=list)
    episodes_due: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    """Messages that are pruned."""

    @property
    def lanes(self) -> list[Lane]:
        """In the order of their first messages."""
        return list(dict.fromkeys(message.lane for message in self.messages))

    def work_of(self, lane: Lane) -> list[Work]:
        """The batches of a lane, in order."""
        return sorted((w for w in self.batches if w.lane == lane), key=lambda w: w.messages[0].number)

    def waiting(self, lane: Lane) -> list[StoredMessage]:
        """The messages of a lane that no batch holds."""
        held = self.gone | {message.id for work in self.work_of(lane) for message in work.messages}
        return [message for message in self.messages if message.lane == lane and message.id not in held]

    def closes_at(self, lane: Lane) -> int | None:
        """When the lane's window closes; None when nothing waits. A full one has closed before now."""
        waiting = self.waiting(lane)
        if not waiting:
            return None
        if len(waiting) >= WINDOW.count_max or sum(len(message.text) for message in waiting) >= WINDOW.chars_max:
            return -1
        times = [message.received_at for message in waiting]
        return WINDOW.due_at(min(times), max(times))

    def due(self, now: int) -> dict[Lane, list[StoredMessage]]:
        """Lanes to be routed, with what waits in them."""
        closing = [(lane, self.closes_at(lane)) for lane in self.lanes]
        return {lane: self.waiting(lane) for lane, at in closing if at is not None and at <= now}

    def route(self, batch_id: int, messages: Sequence[StoredMessage], now: int) -> None:
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
            work.forwarded, work.ended_at = False, now
        if RULES[rule] is Action.SPAWN:
            self.episodes_due.add(batch_id)
        self.batches.append(work)

    def _takes(self, work: Work, rule: str, messages: Sequence[StoredMessage]) -> bool:
        all_of_it = [*work.messages, *messages]
        fits = len(all_of_it) <= WINDOW.count_max and sum(len(m.text) for m in all_of_it) <= WINDOW.chars_max
        return work.untouched and fits and work.forwarded and work.rule == rule


@dataclass
class Joining(Waiting):
    """What becomes of messages that come while a turn of their lane runs."""

    begun: dict[int, int] = field(default_factory=dict)
    """Messages shown to a turn that then began what must not be repeated, and that turn; a person's word ends it."""

    def joined(self, work: Work) -> list[Work]:
        """What its open turn is shown beside it, in order."""
        if work.turn_id is None:
            return []
        return [one for one in self.work_of(work.lane) if one.steered == work.turn_id and one.state == "queued"]

    def next_untouched(self, lane: Lane, after: int) -> Work | None:
        """The next open batch of a lane, if nobody has begun with it."""
        behind = [w for w in self.work_of(lane) if w.state in ("queued", "leased") and w.messages[0].number > after]
        return behind[0] if behind and behind[0].untouched else None

    def steer(self, work: Work, n: int) -> list[Work]:
        """What waits next joins a turn from a step on, as much as the window's bounds allow."""
        taken: list[Work] = []
        there = [work, *self.joined(work)]
        while not work.crashes and (one := self.next_untouched(work.lane, there[-1].messages[-1].number)) is not None:
            there.append(one)
            count, chars = sum(len(w.messages) for w in there), sum(w.chars for w in there)
            if count > WINDOW.count_max or chars > WINDOW.chars_max:
                break
            one.steered, one.steered_at = work.turn_id, n
            taken.append(one)
        return taken

    def interrupt(self, lane: Lane) -> Work | None:
        """What is at work begins anew with the next, if nothing is done twice by that and nobody pays for another."""
        work = next((one for one in self.work_of(lane) if one.state == "leased"), None)
        newer = None if work is None else self.next_untouched(lane, work.messages[-1].number)
        if work is None or newer is None or newer.turned or newer.replies or work.unrepeatable:
            return None
        if work.alone or work.attempts or work.crashes or work.deferrals or newer.rule != work.rule:
            return None
        together = [*work.messages, *newer.messages]
        if together[-1].number - together[0].number + 1 > len(together):
            return None
        if len(together) > WINDOW.count_max or work.chars + newer.chars > WINDOW.chars_max:
            return None
        self.abandon(work, 0)
        work.leave("queued")
        work.messages, work.priority = together, min(work.priority, newer.priority)
        self.batches.remove(newer)
        return work

    def abandon(self, work: Work, now: int) -> None:
        """Its turn will not end: what had joined it is on its own, or parked when it may have asked for too much."""
        for one in self.joined(work):
            if one.steered_at < max(work.unrepeatable, default=-1):
                one.ended_at, one.parked_with = now, work.id
                one.leave("review")
            else:
                one.steered = None
        work.forget_turn()

    def requeue(self, work: Work, now: int) -> None:
        """A person wants it tried again, and what was parked with it."""
        for one in (work, *(one for one in self.batches if one.parked_with == work.id and not one.pruned)):
            for message in one.messages:
                self.begun.pop(message.id, None)
            one.steered = one.parked_with = None
            one.state, one.forwarded, one.requeued, one.ready_at, one.later = "queued", True, True, now, True
            one.deferrals = 0
            one.clear()

    def told(self, work: Work) -> list[Letter]:
        """Its own replies, and that of the turn it joined."""
        others = [] if work.steered is None else [one for w in self.work_of(work.lane) for one in w.replies]
        return [*work.replies, *(letter for letter in others if letter.turn_id == work.steered)]

    def begin_unrepeatable(self, work: Work) -> None:
        """A turn begins what must not be done again; whatever it has been shown must not have begun such before."""
        assert work.turn_id is not None
        n = len(work.steps) + 1
        shown = [work, *(one for one in self.joined(work) if one.steered_at < n)]
        for message in (message for one in shown for message in one.messages):
            assert self.begun.setdefault(message.id, work.turn_id) == work.turn_id, "begun twice, and nobody said so"
        work.unrepeatable.append(n)


@dataclass
class Plan(Joining):
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
        work.turn_id, work.turned = work.turn_id or turn_id, True
        for one in self.joined(work):
            if one.steered_at > work.seen_to:
                one.steered = None

    def commit(self, work: Work, answer: str, now: int) -> None:
        """Its turn ends well, and with it what joined it."""
        settled = [work, *self.joined(work)]
        heard = [message.text for one in settled for message in one.messages]
        self.spoken.setdefault(work.lane, []).extend([*heard, answer])
        for one in settled:
            self.episodes_due.add(one.id)
            one.ended_at = now
            one.leave("done")

    def prunable(self, before: int) -> list[Work]:
        """What is settled and over: of spawned work nobody has ended the task."""
        over = [w for w in self.batches if w.state == "dropped" or (w.state == "done" and w.forwarded)]
        kept = [w for w in over if w.id not in self.episodes_due and w.ended_at < before]
        return [w for w in kept if all(letter.state in ("sent", "not_deliverable") for letter in w.replies)]

    def prune_messages(self, before: int) -> int:
        """The messages of what is over go; how many."""
        going = [work for work in self.prunable(before) if not work.pruned]
        for work in going:
            work.pruned = True
            self.gone.update(message.id for message in work.messages)
        return sum(len(work.messages) for work in going)

    def prune_records(self, before: int) -> int:
        """What is left of these goes; how many."""
        going = [work for work in self.prunable(before) if work.pruned]
        for work in going:
            self.batches.remove(work)
            self.replies = [letter for letter in self.replies if letter not in work.replies]
        return len(going)

    def write(self, work: Work, reply_id: int, now: int, turn_id: int | None = None) -> None:
        """A reply of a turn, or a notice, to its conversation."""
        letter = Letter(reply_id, work.lane.conversation, now, turn_id)
        work.replies.append(letter)
        self.replies.append(letter)

    def sendable(self, now: int, limit: int) -> list[Letter]:
        """The first unsettled reply of each room, if it is due."""
        firsts: dict[str, Letter] = {}
        for letter in self.replies:
            if letter.state in ("pending", "sending", "unknown"):
                firsts.setdefault(letter.room, letter)
        due = [letter for letter in firsts.values() if letter.state == "pending" and letter.next_at <= now]
        return sorted(due, key=lambda letter: (letter.next_at, letter.id))[:limit]


def first_word(message: StoredMessage) -> str:
    """The rule of a message."""
    return message.text.split()[0]


def runs(messages: Iterable[StoredMessage]) -> list[list[StoredMessage]]:
    """Neighbours of one rule, within the window's bounds, as a router would cut them."""
    cut: list[list[StoredMessage]] = []
    for message in messages:
        last = cut[-1] if cut else []
        fits = len(last) < WINDOW.count_max and sum(len(m.text) for m in [*last, message]) <= WINDOW.chars_max
        if last and fits and first_word(last[0]) == first_word(message):
            last.append(message)
        else:
            cut.append([message])
    return cut
