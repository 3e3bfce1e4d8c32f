"""The memory store, as a port: writing, reading, recalling, revising and sharing memories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from keepsaid.domain import bulletin, learning, memory, turn, visibility
from keepsaid.domain.bundle import ImportVerdict, Record
from keepsaid.domain.entities import Entity, EntityTogether
from keepsaid.domain.graph import Association, Mention, Seed
from keepsaid.domain.memory import Found, Kind, Listener, Memory, Narrowing, NewMemory, Used, VectorSpace
from keepsaid.domain.revision import RevisionRefusal
from keepsaid.ports.memory_maintenance import Echoes
from keepsaid.text.words import DocumentFrequencies
from keepsaid.values import frozen


class TextLeg(Protocol):
    """Full-text search over memories."""

    async def text(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """The best matches the listener may read. Any string is a legal query; none raises."""


class Shelf(Protocol):
    """Where what was found is read."""

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        """Of these memories the active or superseded that the listener may read, in order; as of a time or now."""


class Recall(Protocol):
    """Ranked recall over all legs, ungated."""

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> memory.Recalled:
        """The best memories for a query, best first, with the legs that were missing; as of a time (ms UTC) or now."""


class Reminder(Protocol):
    """Recall done for a turn without the model asking."""

    async def remind(self, claimed: turn.ClaimedBatch, recent: Awaitable[turn.Recent]) -> memory.Injection:
        """The memories to inject for these messages, without what the prompt (`recent`) already shows. Never raises."""


class Embedder(Protocol):
    """Turns texts into vectors of length 1, each as 32-bit floats in a row of bytes."""

    async def space(self) -> VectorSpace:
        """The space its vectors are of; reads the weights when first asked. Raises EmbedderError."""

    async def query(self, text: str) -> bytes:
        """The vector of a query, before anything else that waits. Raises EmbedderError."""

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of texts, in order; queries go first. Raises EmbedderError."""


class Vectors(Protocol):
    """Vectors of pieces of memories, by space."""

    async def unembedded(self, space: VectorSpace, after: int, limit: int) -> Sequence[memory.Unembedded]:
        """Pieces behind `after` that have no vector in the space, by id."""

    async def keep_vectors(
        self, space: VectorSpace, vectors: Sequence[memory.NewVector], at: int, reached: int = 0
    ) -> int:
        """Write vectors; a piece that is gone, or has one, gets none. Returns how many were written.

        `reached` says that no piece up to this one is left without; when none is behind it, the space is filled.
        """

    async def spaces(self) -> Sequence[memory.Reached]:
        """The spaces that have vectors and how far each is filled, the furthest first."""

    async def nearest(self, listener: Listener, space: VectorSpace, query: bytes, limit: int) -> tuple[Found, ...]:
        """The memories nearest to a query that the listener may read, and how much nearer than others they are."""


class Memories(Shelf, Protocol):
    """Keeps memories. Every read names its listener."""

    async def keep(self, memories: Sequence[NewMemory], at: int, used: Sequence[Used] = ()) -> tuple[int, ...]:
        """Write memories, unless their keys are known, and count once what each turn `used`; returns their ids."""

    async def find(self, listener: Listener, kinds: Sequence[Kind], limit: int) -> Sequence[Memory]:
        """Memories the listener may read, newest first; no kinds means all."""

    async def important(self, listener: Listener, kind: Kind, limit: int) -> Sequence[Memory]:
        """Memories of a kind the listener may read, the most important first, then the newest; no episodes."""

    async def get(self, listener: Listener, memory_id: int) -> Memory | None:
        """One memory, if the listener may read it."""

    async def read_document_frequencies(self, text: str) -> DocumentFrequencies:
        """Count in how many pieces each word of a text occurs. Stopwords are left out."""

    async def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
        """Pairs of these memories, the smaller id first, whose vectors have a cosine above `above`."""

    async def counts(self) -> dict[str, int]:
        """Active memories by kind."""


class MemoryRevisions(Protocol):
    """Versions of memories. Every read names its listener."""

    async def history(self, listener: Listener, memory_id: int) -> Sequence[Memory]:
        """The memories of this one's slot, or those it replaced, that the listener may read, in order of time."""

    async def correct(self, memory_id: int, memory: NewMemory, at: int) -> learning.LearnResult:
        """Put a memory right: the new words stand in its slot and scope, what it said before is kept as past.

        Doing it again by the same key does nothing. `at` is milliseconds UTC.
        """

    async def pin(self, memory_id: int, at: int, *, pinned: bool) -> RevisionRefusal | None:
        """Pin a memory, so that it never fades, or unpin it; returns the refusal if it is not current at `at` (ms)."""

    async def confirm(self, memory_id: int, at: int) -> bool:
        """Take a memory for certain from now on (milliseconds UTC); False when there is no such memory."""

    async def archive(
        self, memory_ids: Sequence[int], at: int, *, back: bool = False
    ) -> tuple[int, ...] | RevisionRefusal:
        """Archive memories, all or none, or restore archived ones (`back`) as used at `at` (milliseconds UTC).

        Returns the ids that were changed, or the refusal for the first that is not current, or is an episode or a
        summary. Of memories to restore, those that are not archived are ignored.
        """

    async def merge(self, into: int, others: Sequence[int], at: int) -> RevisionRefusal | None:
        """Move the sources of duplicates to one memory; the duplicates are kept, and never recalled.

        All or none. Returns the refusal if one of them is not current, is an episode or a summary, is of another scope
        or slot than `into`, or contradicts it, or if another value was valid between them.
        """

    async def undo(self, request: learning.UndoRequest) -> learning.UndoneMemory | None:
        """Archive the newest memory that a person stored from a conversation, and restore the memories it replaced.

        Counts what `/remember` and the memory tools of turns stored; None if nothing of that is active.
        """

    async def remembered(
        self, listener: Listener, turn_id: int, message_ids: Sequence[int]
    ) -> Sequence[learning.RememberedMemory]:
        """The memories that the tools of a turn, and the commands in these messages, stored and nobody took back."""


class People(Protocol):
    """Who is known by several identities. Reads of memory follow it at once; no stored scope changes."""

    async def join(self, names: Sequence[str], by: str, at: int) -> visibility.Person | None:
        """Make one person of these identities and all linked to them; None if only the owner may do that."""

    async def split(self, name: str) -> bool:
        """Separate one identity from its person; whether it was joined."""

    async def joined_with(self, name: str) -> tuple[str, ...]:
        """All that are the same person, sorted, itself among them."""

    async def everybody(self) -> Sequence[visibility.Person]:
        """All persons that were joined, in the order of their ids."""

    async def seen(self, limit: int) -> Sequence[visibility.SeenIdentity]:
        """The identities that something is remembered from, by their names."""


class MemorySharing(Protocol):
    """Shares memories with more listeners, only by a person's command, and keeps a record of it."""

    async def share(self, commit: visibility.ShareMemory) -> visibility.ShareResult:
        """Share a current memory with more listeners, or return the reason for a refusal, with nothing changed."""

    async def list_shares(self, listener: Listener, memory_id: int) -> Sequence[visibility.MemoryShared]:
        """How a memory that the listener may read was shared, oldest first."""


class Graph(Protocol):
    """What memories have to do with one another, and whom and what they mention."""

    async def relate(self, associations: Sequence[Association], mentions: Sequence[Mention], at: int) -> int:
        """Write both, all or nothing, but nothing of memories that are gone; returns how many are stored now."""

    async def walk(self, listener: Listener, query: str, seeds: Sequence[Seed], limit: int) -> tuple[Found, ...]:
        """The memories a listener may read within two steps of the seeds and the query's names, best first."""


class Entities(Protocol):
    """The people, places, organisations and things that memories mention. Every read names its listener."""

    async def listed(self, listener: Listener, kind: str, limit: int) -> Sequence[Entity]:
        """Entities that memories which the listener may read mention, the most mentioned first; "" for any kind."""

    async def found(self, listener: Listener, name: str) -> Sequence[Entity]:
        """The entities that have this key, or that memories which the listener may read call by this name."""

    async def mentioning(self, listener: Listener, keys: Sequence[str], limit: int, *, said: bool) -> Sequence[int]:
        """The newest messages (`said`), or learned memories, that mention one of the entities, by id."""

    async def together(self, listener: Listener, keys: Sequence[str], limit: int) -> Sequence[EntityTogether]:
        """Other entities that the same memories mention, the most frequent first."""

    async def merge(self, into: str, other: str) -> int:
        """Move the mentions of one entity to another, by keys; returns how many were moved, 0 if either is gone."""


class Learning(Protocol):
    """Learns what is true, each thing once."""

    @property
    def echoes(self) -> Echoes:
        """The sentences that were forgotten."""

    async def learn(self, memories: Sequence[NewMemory], at: int) -> tuple[learning.LearnResult, ...]:
        """Learn memories, all of a call or none; returns the outcome of each, in order.

        What says the same as a memory that is there becomes evidence for it; what says otherwise of the same slot
        ends what held before. Learning the same again, by key or from the same source, changes nothing. `at` is
        milliseconds UTC. Raises a StoreError with nothing learned.
        """


class Library(Protocol):
    """Reads memories closely. Every read says who listens."""

    async def narrowed(self, listener: Listener, ids: Sequence[int], to: Narrowing) -> Sequence[int]:
        """Those of the memories that the listener may read and that fit, in the order given."""

    async def filling(self, listener: Listener, slots: Sequence[bytes], limit: int) -> Sequence[int]:
        """The active memories that fill one of the slots and that the listener may read, the newest first."""

    async def keyed(self, listener: Listener, key: str) -> Sequence[Memory]:
        """The memory that was stored under a key, current or replaced, if the listener may read it."""

    async def sources(self, listener: Listener, memory: Memory, limit: int) -> Sequence[Memory]:
        """The episodes a memory was made from that the listener may read, in order; an episode is its own source."""

    async def around(self, listener: Listener, memory: Memory, each: int) -> Sequence[Memory]:
        """An episode, and the episodes of its lane before and after it that the listener may read, in order."""


class Bulletins(Protocol):
    """What a turn is briefed with."""

    async def render_bulletins(self, claimed: turn.ClaimedBatch) -> str:
        """Render the bulletins of the scopes that a turn may read; "" for none. Never raises or calls a model."""


class BulletinStore(Protocol):
    """Where bulletins are kept, and what they are made of. No read is without a scope."""

    async def standing(self, listener: Listener, now: int) -> Sequence[bulletin.Bulletin]:
        """The bulletins of all scopes that a listener reads, the widest first; one of version 0 where there is none."""

    async def of(self, scope: str, now: int) -> bulletin.Bulletin:
        """The bulletin of one scope; of version 0 where there is none."""

    async def material(self, scope: str, now: int) -> bulletin.Material:
        """What is known in exactly this scope and holds now: no episodes, nothing external, no results of tasks."""

    async def keep(self, bulletin: NewMemory, at: int) -> bool:
        """Keep a bulletin in place of the one before it; returns False if a memory that it tells no longer stands."""


@frozen
class EditRequest:
    """The lines of a bulletin by section, with its target length in words and a time limit in seconds."""

    text: str
    words: int = 500
    limit_s: float = 60.0


@frozen
class EditResult:
    """The edited text of a bulletin, the model, and its usage."""

    text: str
    model: str
    usage: turn.Usage = turn.Usage()


class Editor(Protocol):
    """Writes bulletins."""

    async def edit(self, given: EditRequest) -> EditResult:
        """One bulletin; raises a ModelError when there is none."""


T = TypeVar("T")


@frozen
class BundleContents:
    """What is exported: how many records of each type there are, and the records, which are read while one iterates.

    `schema` is the version of the store's schema, `key_print` tells which key the tombstones are made with.
    """

    schema: int
    counts: Mapping[str, int]
    key_print: str
    records: Iterator[Record]


class Bundles(Protocol):
    """Memory as it leaves a home and enters another. What is read is read for listeners, and for no others."""

    async def export(self, listeners: Sequence[Listener], write: Callable[[BundleContents], T]) -> T:
        """Return what `write` makes of all that one of the listeners may read, in one snapshot.

        `write` runs in a thread. For a person, the export includes what was said in direct chats with that person.
        Persons are exported with the identities they are linked with. Tombstones are exported only if a listener may
        read everything.
        """

    async def look(self, records: Sequence[Record]) -> Sequence[ImportVerdict]:
        """The outcome that each record would have; nothing is changed."""

    async def take(self, records: Sequence[Record], contested: Sequence[bytes], at: int) -> Sequence[ImportVerdict]:
        """Take over records, all of a call or none; what is there stays. Returns the outcome of each.

        What holds in the `contested` slots is decided again by all statements about them. Secrets are masked.
        """

    async def key_print(self) -> str:
        """Which key the tombstones of this home are made with; "" while it has none."""

    async def adopt_key(self, key: bytes) -> bool:
        """Make tombstones with this key from now on; False, and nothing changed, where there is another already."""
