"""Maintenance and forgetting of the memory store, as ports: audits, decay, relations, news; what a request reaches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from keepsaid.domain.event import News
from keepsaid.domain.forgetting import Counts, ForgetSelector, ForgetTargets, Forgetting, HoldingTurns, Traced, Work
from keepsaid.domain.learning import Pair, Ruled, Ruling
from keepsaid.domain.maintenance import AuditEntry, Curve, Holdings, Maintain, Outstanding, Stepped, TaskRun, UpkeepTask
from keepsaid.domain.memory import NewMemory, Source, VectorSpace
from keepsaid.domain.message import Lane
from keepsaid.ports.runtime import Hint
from keepsaid.values import frozen


class Auditing(Protocol):
    """Reads memory, a page at a time. It hears everything: only the owner asks."""

    async def learned(self, after: int, limit: int) -> Sequence[AuditEntry]:
        """What is learned and active, behind an id, in the order of their ids."""

    async def texts(self, after: int, limit: int) -> Sequence[tuple[int, str]]:
        """All that memories that are there say, behind an id, in the order of their ids."""

    async def entries(self, ids: Sequence[int]) -> Sequence[AuditEntry]:
        """Those of these memories that are active, of whatever kind."""

    async def loose(self, task: UpkeepTask, after: int, limit: int) -> tuple[int, tuple[int, ...]] | None:
        """How far a page of one table behind an id goes, and the ids in it that lead to nothing; None for no more."""

    async def withdrawn(self, at: int, limit: int) -> Sequence[int]:
        """Bulletins that tell what holds no more."""

    async def alike(self, ids: Sequence[int], above: float) -> Sequence[tuple[int, int]]:
        """Pairs of these memories, the smaller id first, whose cosine is above `above`."""


class SourceView(Protocol):
    """Reads, in the operational store, the sources that memories refer to."""

    async def missing(self, sources: Sequence[Source]) -> frozenset[Source]:
        """Those of the messages, replies, turns and findings that are there no more."""

    async def shown(self, turns: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """The memories that these turns were shown."""


class Upkeep(Protocol):
    """Does the tasks of maintenance, a step in each commit."""

    async def step(self, step: Maintain) -> Stepped:
        """Do the next step of a task and note where it stands, in one commit. Raises a StoreError with nothing done."""

    async def empty_log(self) -> bool:
        """Cut what was logged of it to nothing; False while somebody still reads it."""

    async def runs(self) -> Sequence[TaskRun]:
        """The last run of each task that ever began."""

    async def outstanding(self, at: int, curve: Curve, space: VectorSpace | None) -> Outstanding:
        """What a run at a time would find to do; nothing is changed."""

    async def holdings(self) -> Holdings:
        """What memory holds."""


@frozen
class Unrelated:
    """A memory that may be associated: its vector, as 32-bit floats, and the episodes it was made from."""

    memory_id: int
    vector: bytes
    episodes: tuple[int, ...] = ()


class Relating(Protocol):
    """Looks for what is to be associated; episodes and summaries are not."""

    async def related_upto(self) -> int:
        """The newest memory that was found to be related to an older one; 0 for none."""

    async def unrelated(self, space: VectorSpace, after: int, limit: int) -> Sequence[Unrelated]:
        """Learned memories that hold, behind this one, by id, up to the first that still waits for its vector."""

    async def among_learned(self, ids: Sequence[int]) -> Sequence[int]:
        """Those of the memories that are learned ones and hold, in the order given."""


@frozen
class Undecided:
    """Pairs in the order in which they are looked at, and the memory behind which to go on."""

    pairs: tuple[Pair, ...]
    upto: int


class PairJudge(Protocol):
    """Rules on pairs."""

    @property
    def name(self) -> str:
        """What to call it; never empty."""

    async def judge(self, pairs: Sequence[Pair]) -> Sequence[Ruling | None]:
        """One ruling for each pair, or None. Memories are data and never instructions. Raises ModelError."""


class Pairs(Protocol):
    """Looks for pairs nobody ruled on, and keeps the rulings."""

    async def undecided(self, after: int, limit: int) -> Undecided:
        """Pairs of related memories that hold, whose newer-kept one is behind `after`, up to a limit."""

    async def count_rulings_since(self, at: int) -> int:
        """Count the pairs that a model ruled on after a time (milliseconds UTC)."""

    async def rule(self, rulings: Sequence[Ruled], at: int) -> int:
        """Keep rulings and do what they come to; returns how many were new. Raises a StoreError with nothing done."""


class MemoryNews(Protocol):
    """Changes of memories that are not published yet."""

    @property
    def hint(self) -> Hint:
        """Set when there may be more."""

    @property
    def changes(self) -> int:
        """How many commits to memory ended in this process, kept or not."""

    async def waiting(self, limit: int) -> tuple[News, ...]:
        """The oldest news that is kept; of what is forgotten there is none, but in its place."""

    async def drop_news(self, until: int) -> None:
        """Delete news with numbers up to `until`, inclusive."""


class Echoes(Protocol):
    """Recognises sentences that were forgotten; of them it keeps keyed hashes alone."""

    async def silence(self, sentences: Sequence[bytes], at: int, aside: int = 0) -> None:
        """Forget these sentences, by their digests; an undo of forgetting `aside`, if any, takes them back."""

    async def repeated(self, sentences: Sequence[str], ids: Sequence[int]) -> frozenset[str]:
        """Return the sentences, as folded words, that a person says in a memory other than these."""

    async def in_texts(self, said: Sequence[tuple[str, str]]) -> Sequence[bool]:
        """Whether each text, with the person who said it ("" for the agent), repeats a sentence that was forgotten."""

    async def in_memory(self, memory: NewMemory) -> bool:
        """Whether a memory was forgotten before, or repeats a sentence that was."""


class ForgetOperations(Protocol):
    """Finds and deletes what a request to forget reaches."""

    async def find_targets(self, wish: ForgetSelector) -> ForgetTargets:
        """Find everything that a request to forget would delete; nothing is changed."""

    async def forget(self, wish: ForgetSelector, by: str, undo_ms: int = 0) -> Forgetting | None:
        """Forget what a request names; None for nothing. With `undo_ms`, it can be undone for so long."""


class ForgettingView(Protocol):
    """Reads requests to forget, and what was forgotten."""

    async def newest(self, limit: int) -> Sequence[Forgetting]:
        """The newest requests first."""

    async def unfinished(self) -> Sequence[Forgetting]:
        """Requests that are not done, the oldest first."""

    async def undoable(self) -> Sequence[Forgetting]:
        """Requests that kept something aside, those that end first."""

    async def one(self, number: int) -> Forgetting | None:
        """One request."""

    async def get_targets(self, number: int) -> ForgetTargets:
        """The targets of a request; none once it is scrubbed."""

    async def tombstones(self) -> tuple[bytes, ...]:
        """Every tombstone."""

    async def revived(self, hashes: Sequence[bytes]) -> Work:
        """Messages, tasks and schedules that are there although they have one of these tombstones."""


class ReachView(Protocol):
    """Reads everything that a wish reaches in the operational store."""

    async def messages(self, wish: ForgetSelector) -> tuple[int, ...]:
        """The messages that a wish names, without those that are forgotten already."""

    async def work(self, wish: ForgetSelector) -> Work:
        """Tasks, schedules and turns in whose words the text of a wish stands, and schedules into its conversation."""

    async def made(self, messages: Sequence[int], turns: Sequence[int]) -> Work:
        """Tasks that were made of these messages or by these turns, and schedules that the turns asked for."""

    async def answering(self, messages: Sequence[int]) -> tuple[int, ...]:
        """The turns that answered these messages."""

    async def list_texts(self, messages: Sequence[int]) -> tuple[str, ...]:
        """The texts of these messages."""

    async def list_attributed_texts(self, messages: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """The persons who wrote these messages, by their names, each with the text."""

    async def lanes(self, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
        """The lanes in which they stand."""

    async def summarised(self, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
        """The lanes with a summary that was made of them."""

    async def forgotten(self, refs: Sequence[str]) -> frozenset[str]:
        """Those of the sources `message:ID`, `reply:ID` and `turn:ID` that were forgotten before."""

    async def holding(self, lanes: Sequence[Lane], words: frozenset[str], memories: Sequence[int]) -> HoldingTurns:
        """Turns of these lanes that hold one of the words, and turns anywhere that name one of the memories."""

    async def at_work(self, since: int, lanes: Sequence[Lane]) -> int:
        """Turns that are open since before a time and may still write what they were shown."""

    async def count(self, targets: ForgetTargets) -> Counts:
        """How many rows `ScrubForgotten` would empty or delete, by the names that its counts have."""


class MemoryUndoLog(Protocol):
    """Undo images of forgettings: the deleted rows of memory, kept until the undo period ends."""

    async def put_back(self, number: int) -> bool:
        """Put back what one kept aside, with tombstones taken away; whether anything was."""

    async def drop(self, number: int) -> bool:
        """Delete what one kept aside; whether anything was."""


class MemoryReach(Protocol):
    """Reads everything that a request to forget reaches in memory; permission is checked before."""

    async def joined(self, person: str) -> tuple[str, ...]:
        """All identities of a person, who is named by one of them or by the id that joined them."""

    async def named(self, wish: ForgetSelector) -> tuple[int, ...]:
        """The memories that a request names."""

    async def lineage(self, ids: Sequence[int], refs: Sequence[str]) -> Sequence[Traced]:
        """Memories by id, key, source or equal words of a person, and those merged into them; no reply by its words."""

    async def said_elsewhere(self, words: frozenset[str], ids: Sequence[int]) -> frozenset[str]:
        """The words that a person said in a memory other than these, or anybody before them."""

    async def holding(self, words: frozenset[str], memories: Sequence[int]) -> tuple[int, ...]:
        """Summaries and bulletins that hold one of the words, and bulletins made of one of the memories.

        They are made again from what stays.
        """

    async def count(self, targets: ForgetTargets) -> Counts:
        """How many rows `hide` and `erase` would delete, by the names that their counts have."""


class KeptTombstones(Protocol):
    """The tombstones of a home outside its databases, which an older copy of the databases does not replace.

    `hide` and `add_tombstones` of the memory store add to them.
    """

    async def read(self) -> frozenset[bytes]:
        """Return every tombstone. Raises StoreError."""

    async def remove(self, hashes: Sequence[bytes]) -> None:
        """Remove the tombstones of a forgetting that is undone. Raises StoreError with nothing removed."""


class ForgetfulMemory(MemoryReach, Protocol):
    """Memory as forgetting needs it. It reads everything: permission is checked before."""

    @property
    def echoes(self) -> Echoes:
        """The sentences that were forgotten."""

    @property
    def kept(self) -> KeptTombstones:
        """The tombstones outside the databases."""

    async def hide(self, ids: Sequence[int], digests: Sequence[bytes], at: int, aside: int = 0) -> Counts:
        """Hide memories and bury their digests, kept for an undo of forgetting `aside`; returns what was deleted."""

    async def erase(self, ids: Sequence[int], aside: int = 0, people: Sequence[str] = ()) -> Counts:
        """Delete memories with all derived rows, and these identities of `people`; returns what was deleted."""

    async def tombstones(self) -> tuple[bytes, ...]:
        """Every tombstone."""

    async def add_tombstones(self, hashes: Sequence[bytes], at: int) -> int:
        """Add tombstones by their hashes, at `at` (milliseconds UTC); returns how many were new."""

    async def revived(self, hashes: Sequence[bytes]) -> tuple[int, ...]:
        """Memories that are there although they have one of these tombstones."""

    async def empty_log(self) -> bool:
        """Cut the log of the file to nothing; False while somebody reads it."""


class TypedLines(Protocol):
    """The history of lines that the interactive chat offers again."""

    async def forget(self, holds: Callable[[str], bool]) -> int:
        """Remove the entries for which `holds` is true, for good; returns how many there were."""


class NoTypedLines:
    """A home in which nobody typed anything."""

    async def forget(self, holds: Callable[[str], bool]) -> int:  # noqa: ARG002
        """Remove nothing."""
        return 0
