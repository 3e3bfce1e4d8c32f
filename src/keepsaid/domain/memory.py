"""Memories: typed things known, where they came from, who may read them, and the filters of a search."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain import graph, ids, receipt
from keepsaid.domain.message import SYSTEM, Lane, Origin, Trust
from keepsaid.text.normal import joined
from keepsaid.text.words import fold, spelled
from keepsaid.values import frozen


class Kind(StrEnum):
    """The kinds of memory."""

    EPISODE = "episode"
    IDENTITY = "identity"
    GOAL = "goal"
    DECISION = "decision"
    TODO = "todo"
    PREFERENCE = "preference"
    FACT = "fact"
    EVENT = "event"
    OBSERVATION = "observation"
    THREAD_SUMMARY = "thread_summary"
    SESSION_SUMMARY = "session_summary"
    THREAD_STATE = "thread_state"
    BULLETIN = "bulletin"


IMPORTANCE = {
    Kind.IDENTITY: 1.0,
    Kind.GOAL: 0.9,
    Kind.DECISION: 0.8,
    Kind.TODO: 0.8,
    Kind.PREFERENCE: 0.7,
    Kind.FACT: 0.6,
    Kind.EVENT: 0.4,
    Kind.OBSERVATION: 0.3,
}
"""Kinds that can be learned, each with its default importance (seed 001).

The other kinds are never learned: episodes record what was said, and the program writes the summaries. Their importance
is 0.5.
"""


class PinnedOrder(StrEnum):
    """Which memories of a kind come first: the newest, or the most important."""

    RECENT = "recent"
    IMPORTANCE = "importance"


LANE_BOUND = frozenset({Kind.EPISODE, Kind.THREAD_SUMMARY, Kind.SESSION_SUMMARY, Kind.THREAD_STATE})
"""Kinds that are readable in another lane on explicit reference only."""

OWNER = "owner"
"""The person who owns this instance, in scopes."""

GLOBAL = "global"

TASK = "task"
"""The kind of source that results of tasks have."""


def conversation_scope(lane: Lane) -> str:
    """The scope of one conversation."""
    return joined(":", "conversation", lane.channel, lane.account, lane.conversation)


def lane_scope(lane: Lane) -> str:
    """The scope of one lane."""
    return joined(":", "lane", *lane)


def person_scope(person: str) -> str:
    """The scope of what one person hears in direct chats."""
    return f"person:{person}"


ASSISTANT = "assistant"
"""The speaker of the agent's replies."""


def person_of(origin: Origin) -> str:
    """Who someone is: the owner, or (channel, account, sender) until people are joined."""
    return OWNER if origin.trust is Trust.OWNER else joined(":", origin.channel, origin.account, origin.sender)


def chat_of(origins: Collection[Origin]) -> str:
    """The person whose direct chat these were all said in; "" where others listen, and for the program's own words."""
    people = {person_of(origin) for origin in origins if origin.direct and origin.sender != SYSTEM}
    return people.pop() if len(people) == 1 and all(origin.direct for origin in origins) else ""


def summary_key(lane: Lane) -> str:
    """The name of the memory that is the summary of a lane."""
    return joined(":", str(Kind.THREAD_SUMMARY), *lane)


def episode_scope(origin: Origin, lane: Lane) -> str:
    """The default scope of an episode: its person, said in a direct chat, else its conversation (design: section 7)."""
    is_own = origin.direct and (origin.sender != SYSTEM or origin.trust is Trust.OWNER)
    return person_scope(person_of(origin)) if is_own else conversation_scope(lane)


def chat_scope(person: str, lane: Lane) -> str:
    """The scope of what the program says: the person whose direct chat it is (`chat_of`), else the conversation."""
    return person_scope(person) if person else conversation_scope(lane)


@frozen
class Listener:
    """Who is about to hear: no read of memory exists without one.

    Of other lanes only the episodes of the person's own direct chats are readable, with `chats`; `cross` lifts that
    rule, and never widens the scopes. Results of tasks are readable only if `asked`, by a tool or a command: they are
    never recalled. The store adds the scopes of whom the person is joined with, as they stand when it is asked.
    """

    lane: Lane | None
    person: str = ""
    direct: bool = False
    everything: bool = False
    cross: bool = False
    asked: bool = False
    chats: bool = True

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes this listener may read."""
        scopes = [GLOBAL]
        if self.lane is not None:
            scopes += [conversation_scope(self.lane), lane_scope(self.lane)]
        if self.direct and self.person:
            scopes.append(person_scope(self.person))
        return tuple(scopes)


@frozen
class Source:
    """Where a memory came from: a message, a reply, a turn, a finding or a person's own entry."""

    kind: str
    ref: str

    @property
    def name(self) -> str:
        """The id by which lists show it, a reply by its turn; others as they are stored: `external:...`."""
        if (kind := _NAMED_BY.get(self.kind)) is None or not self.ref.isdecimal():
            return f"{self.kind}:{self.ref}"
        shown = ids.show(kind, int(self.ref))
        return f"reply of {shown}" if self.kind == "reply" else shown


_NAMED_BY = {"message": "message", "reply": "turn", "turn": "turn", "task": "task", "session": "session"}
"""What the number of a source is the id of."""


class About(NamedTuple):
    """Someone or something that a memory is about: person, place, organisation or thing, and the name."""

    kind: str
    name: str


@frozen
class NewMemory:
    """A memory to be written; `key` is its deterministic name, so that writing it again changes nothing.

    But one of a higher `version` takes the place of the one that is there. Times are milliseconds UTC. `lane` is None
    for what belongs to no conversation. A `derived` memory was made from others' words, `metadata` is a JSON object.
    What says one thing about someone has a slot, (subject, attribute), and a `value`; it holds from `valid_from`, or
    else `said_at`, until `valid_to` where it says so itself. One that `corrects` is a person's own word on its slot.
    `speaker_id` is the person who said it and `subject_id` whom it is about, each as `person_of` names them; `speaker`
    and `subject` are what they are called, which identifies nobody. `chat_of` is the person with whom it was said in a
    direct chat, "" for what was said before others. What a person `asked` to have remembered is, even if the same was
    forgotten before; this is not stored. Whoever learned it may say whom and what it is `about`.
    """

    key: str
    kind: Kind
    text: str
    scope: str
    trust: Trust
    lane: Lane | None = None
    speaker: str = ""
    subject: str = ""
    said_at: int = 0
    importance: float = 0.5
    sources: tuple[Source, ...] = ()
    derived: bool = False
    version: int = 0
    metadata: str = "{}"
    attribute: str = ""
    value: str = ""
    valid_from: int | None = None
    valid_to: int | None = None
    confidence: float = 1.0
    corrects: bool = False
    speaker_id: str = ""
    subject_id: str = ""
    chat_of: str = ""
    asked: bool = False
    about: tuple[About, ...] = ()


@frozen
class Used:
    """The memories that one turn was shown or opened; `at` is milliseconds UTC."""

    turn_id: int
    memories: tuple[int, ...]
    at: int


@frozen
class Memory:
    """A stored memory; `access_count` turns were shown or opened it, the last at `last_access_at` (None for none).

    `evidence` is in how many sources it was found. It held until `valid_to`, be it by its own word or because the
    memory `superseded_by` took its place; None for what holds still.
    """

    id: int
    new: NewMemory
    state: str
    recorded_at: int
    access_count: int = 0
    last_access_at: int | None = None
    superseded_by: int | None = None
    valid_to: int | None = None
    evidence: int = 1
    pinned: bool = False

    @property
    def text(self) -> str:
        """What is known."""
        return self.new.text

    @property
    def holds_from(self) -> int:
        """Since when it holds: as it says itself, or else since it was said; milliseconds UTC."""
        return self.new.said_at if self.new.valid_from is None else self.new.valid_from

    def past(self, at: int) -> bool:
        """Whether it held no more at a time (milliseconds UTC)."""
        return self.valid_to is not None and self.valid_to <= at

    def state_at(self, at: int) -> str:
        """Its state at a time (milliseconds UTC): active, superseded, expired, merged or archived."""
        if self.state in ("merged", "archived") or not (self.state == "superseded" or self.past(at)):
            return self.state
        ended = self.superseded_by is None and self.new.valid_to is not None and self.new.valid_to <= at
        return "expired" if ended else "superseded"


class Found(NamedTuple):
    """What one leg found: a memory by its id, and a score above zero that compares within this answer only.

    `path` is how the graph leg came to it.
    """

    memory_id: int
    score: float
    path: tuple[graph.WalkStep, ...] = ()


@frozen
class Hit:
    """A recalled memory: its rank (from 1) and score within the leg that weighed most for it.

    `value` is what all legs came to, and `places` where each of them had it. `now_id` is the memory that holds now in
    place of one that was replaced, 0 for none. `neighbour` says that it does not match by itself, but stands next
    to what does.
    """

    memory: Memory
    leg: str
    rank: int
    score: float
    value: float = 0.0
    places: tuple[receipt.Place, ...] = ()
    now_id: int = 0
    neighbour: bool = False


@frozen
class Recalled:
    """What recall found, best first, and the legs that are not set up or could not answer, each with its reason.

    `answered` is false when no leg could. `searched` says how each leg did, `beyond` what came after the hits.
    `by_meaning` is false when nothing is set up that compares meanings.
    """

    hits: tuple[Hit, ...]
    missing: tuple[str, ...] = ()
    took_ms: float = 0.0
    answered: bool = True
    searched: tuple[receipt.Searched, ...] = ()
    beyond: tuple[receipt.Beyond, ...] = ()
    by_meaning: bool = True


@frozen
class Candidate:
    """A memory considered for a turn, and why it was chosen or left out: in words, in one word, and in numbers."""

    hit: Hit
    chosen: bool
    reason: str
    cause: receipt.Cause
    measured: tuple[receipt.Measure, ...] = ()


@frozen
class Injection:
    """The memory of one turn: the block the model sees, and every candidate with its reason."""

    block: str = ""
    candidates: tuple[Candidate, ...] = ()
    missing: tuple[str, ...] = ()
    took_ms: float = 0.0
    skipped: str = ""
    searched: tuple[receipt.Searched, ...] = ()
    beyond: tuple[receipt.Beyond, ...] = ()


@frozen
class Narrowing:
    """What a search keeps to; None for no limit. Times are milliseconds UTC, `since` and `until` of what was said.

    `as_of` keeps to what was known and held true at that time. `person` is who said it or whom it is about.
    """

    kind: Kind | None = None
    person: str = ""
    since: int | None = None
    until: int | None = None
    as_of: int | None = None

    def about(self, memory: Memory) -> bool:
        """Whether the person said it or is whom it is about: every word of the name, whatever its case."""
        wanted = {fold(word) for word in spelled(self.person)}
        named = (memory.new.speaker, memory.new.subject)
        return not self.person or any(wanted and wanted <= {fold(word) for word in spelled(name)} for name in named)


@frozen
class VectorSpace:
    """Which model made vectors: its name, revision, how many numbers a vector has, and the hash of its weights."""

    model: str
    revision: str
    dimension: int
    weights_hash: bytes

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.model} ({self.dimension} numbers)"


@frozen
class Reached:
    """How far a space is filled: every piece up to this one has its vector, or needs none."""

    space: VectorSpace
    piece_id: int


@frozen
class Unembedded:
    """A piece of a memory that has no vector yet."""

    piece_id: int
    text: str


@frozen
class NewVector:
    """The vector of a piece: numbers of 32 bits as they lie in memory, of length 1."""

    piece_id: int
    vector: bytes
