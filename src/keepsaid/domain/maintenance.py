"""Maintenance of memory: nightly tasks step by step, how importance decays (Ebbinghaus), and what an audit finds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp, log
from typing import NamedTuple

from keepsaid.domain import attributes, commits, memory, visibility
from keepsaid.text.sameness import say_the_same, telling
from keepsaid.values import frozen

DAY_MS = 86_400_000
POWER = 0.8

FADING = frozenset(memory.IMPORTANCE) - {memory.Kind.IDENTITY}
"""Kinds whose importance decays: all that can be learned, except who somebody is."""

_WORTH_WRITING = 0.99


@frozen
class Curve:
    """How fast importance fades, below which it is archived, and for how many days after its last use it is not.

    At the default rate half of it is left after 84 days; a fact that nobody ever used again is archived after 414.
    """

    rate: float = 0.02
    floor: float = 0.05
    grace_days: float = 30.0


@frozen
class FadeTrace:
    """What fades: a memory's importance, since when it was not used, and up to when that is counted already.

    Times are milliseconds UTC. `uses` are turns that were shown it, and pieces of evidence beyond the first.
    """

    importance: float
    since: int
    counted: int | None = None
    uses: int = 0

    def at(self, now: int, curve: Curve) -> float:
        """Its importance now."""
        rate = curve.rate / (1 + log(1 + max(0, self.uses)))
        gone = self._days(now) ** POWER - self._days(self.counted or self.since) ** POWER
        return self.importance * exp(-rate * max(0.0, gone))

    def worth_counting(self, now: int, curve: Curve) -> bool:
        """Whether so much is gone that it is to be written; what is not is counted with the next."""
        left = self.at(now, curve)
        return left < _WORTH_WRITING * self.importance or self.gone(left, now, curve)

    def gone(self, left: float, now: int, curve: Curve) -> bool:
        """Whether with so much left it is to be archived."""
        return left < curve.floor and self._days(now) >= curve.grace_days

    def _days(self, at: int) -> float:
        return max(0, at - self.since) / DAY_MS


PIECE = 32
"""Things that are looked at together; one memory that is archived is as much work."""


class UpkeepTask(StrEnum):
    """What is done, in this order."""

    FADE = "fade"
    ENDED = "ended"
    BULLETINS = "bulletins"
    EDGES = "edges"
    MENTIONS = "mentions"
    SOURCES = "sources"
    STATEMENTS = "statements"
    CHAINS = "chains"
    PIECES = "pieces"
    VECTORS = "vectors"
    ENTITIES = "entities"
    SPACES = "spaces"
    TERMS = "terms"


_NOT_LOOSE = ("fade", "ended", "bulletins", "spaces", "terms")
LOOSE = tuple(task for task in UpkeepTask if task not in _NOT_LOOSE)
"""Tasks that take away what leads to nothing, in an order in which one leaves nothing for those before it."""


@frozen
class Stepped:
    """What a step did: how much it looked at, changed and archived, and whether its task is over."""

    looked: int = 0
    changed: int = 0
    archived: int = 0
    over: bool = True

    def then(self, further: Stepped) -> Stepped:
        """It and what was done further in the same step."""
        changed, archived = self.changed + further.changed, self.archived + further.archived
        return Stepped(self.looked + further.looked, changed, archived, over=further.over)


@frozen
class Maintain(commits.Commit[Stepped]):
    """The next step of a task, over at most `limit` things; where it goes on from stands in the store.

    It is done in pieces of PIECE things, and is over once it worked for `budget_ms`: one piece it does in any case.
    A task that was not over goes on as of the time at which it began; else it begins at `at`, milliseconds UTC.
    `space` is the one whose vectors serve; those of others go, once it reached as far as any of them.
    """

    task: UpkeepTask
    at: int
    limit: int
    curve: Curve = Curve()
    space: memory.VectorSpace | None = None
    budget_ms: float | None = None


@frozen
class TaskRun:
    """The last run of a task, or the one that is not over: `ended_at` is None. Times are milliseconds UTC."""

    task: UpkeepTask
    begun_at: int
    ended_at: int | None
    changed: int
    archived: int


@frozen
class Outstanding:
    """What a run would find to do, by task; of memories to fade, how many would be archived."""

    found: Mapping[UpkeepTask, int] = field(default_factory=dict)
    archived: int = 0


@frozen
class Holdings:
    """What memory holds: memories by kind, state and kind of scope, and how much of what belongs to them.

    `unembedded` are pieces without a vector in the space that reached furthest.
    """

    kinds: Mapping[str, int]
    states: Mapping[str, int]
    scopes: Mapping[str, int]
    counts: Mapping[str, int]
    runs: tuple[TaskRun, ...] = ()


COMPARED_MAX = 1_000
"""The newest memories with a shared rare word, at most this number, that one memory is compared with."""


class AuditProblem(StrEnum):
    """Problems that the audit looks for."""

    DUPLICATE = "duplicates"
    CONTRADICTION = "contradictions"
    STALE = "stale"
    UNUSED = "never recalled"
    SECRET = "secrets"  # noqa: S105 - the name of a trouble
    ORPHANED = "orphaned"
    ECHO = "echo loops"


class Fix(StrEnum):
    """The command that puts a case right, by its name under `keepsaid memory`."""

    MERGE = "merge"
    EDIT = "edit"
    MAINTAIN = "maintain"
    ARCHIVE = "archive"
    FORGET = "forget"


@frozen
class AuditFinding:
    """One finding of the audit: the memories concerned, `what` in a word or two, and the command that fixes it.

    The fix applies to the first memory; a merge keeps it for the others. An edit gives `text` and `value`.
    """

    trouble: AuditProblem
    ids: tuple[int, ...]
    fix: Fix
    what: str = ""
    text: str = ""
    value: str = ""


class AuditEntry(NamedTuple):
    """An active memory as far as an audit looks at it; times are milliseconds UTC.

    `uses` are turns that were shown it, `kept` says that a person pinned, confirmed or corrected it, and `learned` that
    it is neither an episode nor a summary.
    """

    id: int
    text: str
    scope: str
    external: bool
    slot: bytes | None
    subject: str
    attribute: str
    value: str
    start: int
    until: int | None
    after: int | None
    recorded_at: int
    uses: int
    kept: bool
    learned: bool = True
    sources: tuple[memory.Source, ...] = ()

    def holds(self, at: int) -> bool:
        """Whether it holds at a time, with nothing that took its place."""
        return self.after is None and (self.until is None or self.until > at)

    def same_as(self, other: AuditEntry) -> bool:
        """Whether it says what another one says: the same value of the same slot, or else the same words."""
        if self.slot is not None and self.slot == other.slot:
            return attributes.value_name(self.value) == attributes.value_name(other.value)
        return say_the_same(self.text, other.text)


@dataclass(slots=True)
class ConflictFinder:
    """Finds memories that say the same, or of which only one can be true, while they are read one by one."""

    at: int
    _words: dict[tuple[str, str], list[AuditEntry]] = field(default_factory=dict)
    _slots: dict[bytes, list[AuditEntry]] = field(default_factory=dict)

    def look(self, entry: AuditEntry) -> Iterator[AuditFinding]:
        """What is wrong between a memory and those before it."""
        if entry.external or not entry.holds(self.at):
            return
        if entry.slot is not None:
            yield from self._in_slot(entry, self._slots.setdefault(entry.slot, []))
            return
        words = [(entry.scope, word) for word in telling(entry.text)]
        before = {one.id: one for word in words for one in self._words.get(word, ())[-COMPARED_MAX:]}
        alike = [one for _, one in sorted(before.items()) if _about_the_same(one, entry) and one.same_as(entry)]
        if alike:
            yield AuditFinding(AuditProblem.DUPLICATE, (alike[0].id, entry.id), Fix.MERGE, "the same words")
            return
        for word in words:
            self._words.setdefault(word, []).append(entry)

    def _in_slot(self, entry: AuditEntry, others: list[AuditEntry]) -> Iterator[AuditFinding]:
        together = [one for one in others if _meet(one, entry)]
        if same := [one for one in together if one.same_as(entry) and one.scope == entry.scope]:
            yield AuditFinding(AuditProblem.DUPLICATE, (same[0].id, entry.id), Fix.MERGE, "the same value")
        elif attributes.single(entry.attribute):
            for one in (one for one in together if not one.same_as(entry)):
                newer, older = (entry, one) if entry.start >= one.start else (one, entry)
                if visibility.within(older.scope, newer.scope):
                    ids, what = (newer.id, older.id), "two values at once"
                    yield AuditFinding(AuditProblem.CONTRADICTION, ids, Fix.EDIT, what, newer.text, newer.value)
        others.append(entry)

    def several(self) -> Iterator[Sequence[AuditEntry]]:
        """The memories of each slot that has several values at a time, more than one of them."""
        for entries in self._slots.values():
            if len(entries) > 1 and not attributes.single(entries[0].attribute):
                yield entries


def _about_the_same(one: AuditEntry, other: AuditEntry) -> bool:
    first, second = attributes.value_name(one.subject), attributes.value_name(other.subject)
    return not first or not second or first == second


def _meet(one: AuditEntry, other: AuditEntry) -> bool:
    """Whether there is a time at which both hold."""
    return (one.until is None or one.until > other.start) and (other.until is None or other.until > one.start)


def unused(entry: AuditEntry, since: int) -> AuditFinding | None:
    """The case of a memory that was never shown to a turn, nor is kept by a person, since a time."""
    if entry.uses or entry.kept or max(entry.recorded_at, entry.start) > since or entry.after is not None:
        return None
    return AuditFinding(AuditProblem.UNUSED, (entry.id,), Fix.ARCHIVE)


def ended(entry: AuditEntry, before: int) -> AuditFinding | None:
    """The case of a memory whose time was over before a night that should have ended it."""
    over = entry.until is not None and entry.until <= before
    return AuditFinding(AuditProblem.STALE, (entry.id,), Fix.MAINTAIN, "its time is over") if over else None


def sourceless(entry: AuditEntry, missing: Collection[memory.Source]) -> AuditFinding | None:
    """The case of a memory none of whose sources is there any more; said by a person now, it has one again."""
    if not entry.sources or any(one not in missing for one in entry.sources):
        return None
    what = "its sources lead to nothing"
    return AuditFinding(AuditProblem.ORPHANED, (entry.id,), Fix.EDIT, what, entry.text, entry.value)


def echo(entry: AuditEntry, shown: Sequence[AuditEntry]) -> AuditFinding | None:
    """The case of a memory that was learned from a reply, in which the agent told what it had been shown."""
    if not (said := [one for one in shown if one.id != entry.id and one.same_as(entry)]):
        return None
    first = said[0]
    if first.scope == entry.scope and first.slot == entry.slot and first.learned:
        return AuditFinding(AuditProblem.ECHO, (first.id, entry.id), Fix.MERGE, "learned from a reply that repeats it")
    return AuditFinding(AuditProblem.ECHO, (entry.id,), Fix.ARCHIVE, "learned from a reply that repeats what was shown")


def repeats_only(sources: Sequence[memory.Source]) -> tuple[int, ...]:
    """The turns whose replies are all that a memory was learned from; none where a person said any of it."""
    said = [one for one in sources if one.kind != "finding"]
    if not said or any(one.kind != "reply" or not one.ref.isdecimal() for one in said):
        return ()
    return tuple(int(one.ref) for one in said)
