"""Messages, memories and small ports that the tests of memory share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tests.unit.echo_cast import NoEchoes

from keepsaid.domain.batch import DueLane, StoredBatch, WaitingGroup
from keepsaid.domain.commits import Commit, EpisodesKept
from keepsaid.domain.learning import LearnOutcome, LearnResult
from keepsaid.domain.memory import GLOBAL, Hit, Kind, Listener, Memory, NewMemory, Recalled, Source, Used
from keepsaid.domain.message import Content, Inbound, Lane, Origin, StoredMessage, Trust
from keepsaid.domain.route import Action, Verdict
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.domain.views import EpisodeWork, MessageFilter, Overview, Story
from keepsaid.text.languages import STOPWORDS
from keepsaid.text.words import DocumentFrequencies, fold, root, spelled

R = TypeVar("R")
LANE = Lane("terminal", "default", "terminal:me", "root:terminal:me")
OWNER_ORIGIN = Origin("terminal", "default", "terminal:me", "me", "Ana", direct=True, trust=Trust.OWNER)


def message(id_: int, text: str, origin: Origin = OWNER_ORIGIN, lane: Lane = LANE) -> StoredMessage:
    """A stored message, received `id_` milliseconds after the epoch."""
    return StoredMessage(id_, lane, id_, Inbound(origin, Content(text.encode("utf-8", "replace"), text)), id_)


def claimed(*messages: StoredMessage) -> ClaimedBatch:
    """A batch of these messages, under lease."""
    verdict = Verdict(Action.FORWARD, "default", "v", "because")
    first, last = messages[0], messages[-1]
    return ClaimedBatch(StoredBatch(1, first.lane, first.number, last.number, "leased", verdict, 10), 900, messages)


def memory(id_: int, text: str, *, key: str = "", state: str = "active", **fields: object) -> Memory:
    """A stored episode said by Bob on 2026-11-20, from the message with its id."""
    values: dict[str, object] = {
        "kind": Kind.EPISODE,
        "scope": GLOBAL,
        "trust": Trust.OWNER,
        "speaker": "Bob",
        "said_at": 1_795_132_800_000,
        "sources": (Source("message", str(id_)),),
        **fields,
    }
    return Memory(id_, NewMemory(key=key or f"message:{id_}", text=text, **values), state, 0)  # type: ignore[arg-type]


def hits(*memories: Memory) -> tuple[Hit, ...]:
    """These memories as the text leg ranks them."""
    return tuple(Hit(one, "text", rank, 1.0 - rank / 100) for rank, one in enumerate(memories, start=1))


class FixedRecall:
    """Recalls the same whatever is asked, and notes what was."""

    def __init__(self, *found: Memory, missing: tuple[str, ...] = ()) -> None:
        self.recalled = Recalled(hits(*found), missing)
        self.asked: list[tuple[Listener, str, int]] = []

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> Recalled:
        self.asked.append((listener, query, limit))
        return self.recalled


class ListedMemories:
    """Memories in a list; keys decide what is kept. Every word is so rare that sharing one is enough.

    `same` are pairs that say the same.
    """

    same: tuple[tuple[int, int], ...] = ()

    def __init__(self, *stored: Memory) -> None:
        self.stored = list(stored)
        self.writes = 0
        self.used: list[Used] = []

    async def keep(self, memories: Sequence[NewMemory], at: int, used: Sequence[Used] = ()) -> tuple[int, ...]:
        self.writes += 1
        self.used.extend(used)
        known = {one.new.key: one.id for one in self.stored}
        for new in memories:
            if new.key not in known:
                known[new.key] = len(self.stored) + 1
                self.stored.append(Memory(known[new.key], new, "active", at))
        return tuple(known[new.key] for new in memories)

    async def find(self, listener: Listener, kinds: Sequence[Kind], limit: int) -> Sequence[Memory]:
        return [one for one in self.stored if not kinds or one.new.kind in kinds][:limit]

    async def important(self, listener: Listener, kind: Kind, limit: int) -> Sequence[Memory]:
        found = [one for one in self.stored if one.new.kind is kind]
        return sorted(found, key=lambda one: one.new.importance, reverse=True)[:limit]

    async def read_document_frequencies(self, text: str) -> DocumentFrequencies:
        telling = {root(word) for word in spelled(text) if fold(word) not in STOPWORDS}
        return DocumentFrequencies(1_000_000, dict.fromkeys(telling, 0))

    async def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
        return tuple(pair for pair in self.same if {*pair} <= {*ids})

    async def get(self, listener: Listener, memory_id: int) -> Memory | None:
        return next((one for one in self.stored if one.id == memory_id), None)

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        return [one for id_ in ids for one in self.stored if one.id == id_]

    async def counts(self) -> dict[str, int]:
        return {}

    @property
    def echoes(self) -> NoEchoes:
        return NoEchoes()

    async def learn(self, memories: Sequence[NewMemory], at: int) -> tuple[LearnResult, ...]:
        return tuple(LearnResult(id_, LearnOutcome.NEW) for id_ in await self.keep(memories, at))

    async def correct(self, memory_id: int, memory: NewMemory, at: int) -> LearnResult:
        [learnt] = await self.learn([memory], at)
        return learnt

    async def confirm(self, memory_id: int, at: int) -> bool:
        return any(one.id == memory_id for one in self.stored)


class WorkList:
    """The operational store, as far as recording needs it: episode work, cleared by a commit."""

    def __init__(self, *work: EpisodeWork) -> None:
        self.work = list(work)
        self.asked: list[tuple[int, str | None]] = []
        self.kept: list[EpisodesKept] = []

    async def episode_work(self, limit: int, conversation: str | None = None) -> Sequence[EpisodeWork]:
        self.asked.append((limit, conversation))
        fits = (one for one in self.work if conversation in (None, one.messages[0].lane.conversation))
        return list(fits)[:limit]

    async def apply(self, commit: Commit[R]) -> R:
        assert isinstance(commit, EpisodesKept)
        self.kept.append(commit)
        before = len(self.work)
        self.work = [one for one in self.work if one.batch_id not in commit.batch_ids]
        return before - len(self.work)  # type: ignore[return-value]

    async def due(self, at: int, limit: int) -> tuple[DueLane, ...]:
        raise NotImplementedError

    async def waiting(self, lanes: Sequence[Lane]) -> tuple[WaitingGroup, ...]:
        raise NotImplementedError

    async def next_due(self) -> int | None:
        raise NotImplementedError

    async def story(self, message_id: int) -> Story | None:
        raise NotImplementedError

    async def find(self, wanted: MessageFilter) -> Sequence[Story]:
        raise NotImplementedError

    async def overview(self) -> Overview:
        raise NotImplementedError
