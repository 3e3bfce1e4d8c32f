"""Reach of a forgetting request: every row of the operational store that it names, and how the words go."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from keepsaid.adapters.sql.operations.forgetting import SQL, read_targets
from keepsaid.adapters.sql.operations.forgetting_names import work_made, work_named
from keepsaid.adapters.sql.operations.routing import lane_id_of
from keepsaid.adapters.sql.operations.views import SQL as VIEWS
from keepsaid.adapters.sql.query import every, one, only, reads
from keepsaid.adapters.sql.session import Row, SqlReaders, SqlSession
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain.forgetting import (
    ForgetSelector,
    Forgetting,
    HoldingTurns,
    Work,
    message_name,
    name_digest,
    source_name,
    words_in,
)
from keepsaid.domain.ids import show
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import person_of
from keepsaid.domain.message import Origin, Trust


def _one(db: SqlSession, number: int) -> Forgetting | None:
    """One request."""
    row = one(db, SQL["row"], (number,))
    return None if row is None else _forgetting(row)


class SqlForgettings:
    """Requests to forget, and what they reach; read only."""

    def __init__(self, readers: SqlReaders, tombs: TombstoneKeyring) -> None:
        self._readers = readers
        self._tombs = tombs

    async def newest(self, limit: int) -> Sequence[Forgetting]:
        """The newest requests first."""
        return await self._readers.run(lambda db: [_forgetting(row) for row in every(db, SQL["newest"], (limit,))])

    async def unfinished(self) -> Sequence[Forgetting]:
        """Requests that are not done, the oldest first."""
        return await self._readers.run(lambda db: [_forgetting(row) for row in every(db, SQL["unfinished"])])

    async def undoable(self) -> Sequence[Forgetting]:
        """Requests that kept something aside, those that end first."""
        return await self._readers.run(lambda db: [_forgetting(row) for row in every(db, SQL["undoable"])])

    one = reads(_one)
    get_targets = reads(read_targets)

    async def tombstones(self) -> tuple[bytes, ...]:
        """Every tombstone."""
        return await self._readers.run(lambda db: tuple(row[0] for row in every(db, SQL["tombstones"])))

    async def revived(self, hashes: Sequence[bytes]) -> tuple[int, ...]:
        """Messages that are there although they have one of these tombstones."""
        return await self._readers.run(_revived, frozenset(hashes), self._tombs)


def _messages(db: SqlSession, wish: ForgetSelector) -> tuple[int, ...]:
    """The messages that a wish names, without those that are forgotten already."""
    found = dict.fromkeys(wish.messages)
    if wish.conversation:
        for (lane_id,) in every(db, SQL["lanes_of_conversation"], (wish.conversation,)):
            found |= dict.fromkeys(row[0] for row in every(db, SQL["messages_of_lane"], (lane_id,)))
            found |= dict.fromkeys(_named(every(db, SQL["refs_of_lane"], (lane_id,))))
    if wish.person or wish.text:
        wanted = wish.text.casefold()
        for message_id, channel, account, sender, trust, text in every(db, SQL["all_messages"]):
            origin = Origin(channel, account, "", sender, trust=Trust(trust))
            by_person = bool(wish.persons) and (person_of(origin) in wish.persons or sender == wish.person)
            if by_person or (wanted and wanted in text.casefold()):
                found[message_id] = None
    if wish.text:
        said = every(db, SQL["all_said"])
        found |= dict.fromkeys(_named([row for row in said if wish.text.casefold() in row[1].casefold()]))
    return tuple(found)


class SqlReach:
    """Everything that a wish reaches; read only."""

    def __init__(self, readers: SqlReaders, tombs: TombstoneKeyring) -> None:
        self._readers = readers
        self._tombs = tombs

    messages = reads(_messages)
    work = reads(work_named)

    async def made(self, messages: Sequence[int], turns: Sequence[int]) -> Work:
        """Tasks that were made of these messages or by these turns, and schedules that the turns asked for."""
        return await self._readers.run(work_made, tuple(messages), tuple(turns))

    async def answering(self, messages: Sequence[int]) -> tuple[int, ...]:
        """The turns that answered these messages."""
        return await self._readers.run(_answering, tuple(messages))

    async def list_texts(self, messages: Sequence[int]) -> tuple[str, ...]:
        """The texts of these messages."""
        return await self._readers.run(_list_texts, tuple(messages))

    async def list_attributed_texts(self, messages: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """The persons who wrote these messages, by their names, each with the text."""
        return await self._readers.run(_list_attributed_texts, tuple(messages))

    async def lanes(self, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
        """The lanes in which they stand."""
        return await self._readers.run(_lanes, tuple(messages), tuple(turns))

    async def summarised(self, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
        """The lanes with a summary that was made of them."""
        return await self._readers.run(_summarised, tuple(messages), tuple(turns))

    async def forgotten(self, refs: Sequence[str]) -> frozenset[str]:
        """Those of the sources that were forgotten before."""
        return await self._readers.run(_forgotten, tuple(refs), self._tombs)

    async def holding(self, lanes: Sequence[Lane], words: frozenset[str], memories: Sequence[int]) -> HoldingTurns:
        """Turns of these lanes that hold one of the words, and turns anywhere that name one of the memories."""
        return await self._readers.run(_holding, tuple(lanes), words, tuple(memories))

    async def at_work(self, since: int, lanes: Sequence[Lane]) -> int:
        """Turns that are open since before a time and may still write what they were shown."""
        return await self._readers.run(_at_work, since, tuple(lanes))


def _forgetting(row: Row) -> Forgetting:
    number, state, how, by, requested_at, changed_at, counts, until = row
    told = tuple(sorted(json.loads(counts).items()))
    return Forgetting(number, state, how, by, requested_at, changed_at, told, until)


def _named(rows: Iterable[Row]) -> Iterator[int]:
    """The messages that records show."""
    for ref, *_ in rows:
        kind, _, number = str(ref).partition(":")
        if kind == "message" and number.isdecimal():
            yield int(number)


def _answering(db: SqlSession, messages: tuple[int, ...]) -> tuple[int, ...]:
    found: dict[int, None] = {}
    for message_id in messages:
        place = one(db, SQL["place"], (message_id,))
        batch = None if place is None else one(db, VIEWS["batch_of"], place)
        bound = (f"message:{message_id}", None if batch is None else batch[0])
        found |= dict.fromkeys(row[0] for row in every(db, SQL["turns_answering"], bound))
    return tuple(found)


def _list_texts(db: SqlSession, messages: tuple[int, ...]) -> tuple[str, ...]:
    return tuple({row[0]: None for number in messages for row in every(db, SQL["said_in"], (number,)) if row[0]})


def _list_attributed_texts(db: SqlSession, messages: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    rows = [row for number in messages for row in every(db, SQL["spoken_in"], (number,))]
    return tuple(
        (person_of(Origin(channel, account, "", sender, trust=Trust(trust))), text)
        for channel, account, sender, trust, text in rows
    )


def _lanes(db: SqlSession, messages: tuple[int, ...], turns: tuple[int, ...]) -> tuple[Lane, ...]:
    ids = {row[0] for number in messages for row in every(db, SQL["lanes_of_message"], (number,))}
    ids |= {row[0] for number in turns for row in every(db, SQL["lanes_of_turn"], (number,))}
    return tuple(Lane(*row) for row in every(db, SQL["lane_names"], (db.numbers((0, *sorted(ids))),)))


def _ids(db: SqlSession, lanes: tuple[Lane, ...]) -> frozenset[int]:
    return frozenset(number for lane in lanes if (number := lane_id_of(db, lane)) is not None)


@dataclass(frozen=True, slots=True)
class _Search:
    """What is looked for: words in these lanes and in turns that were shown the memories, their names anywhere."""

    words: frozenset[str]
    names: tuple[str, ...]
    lanes: frozenset[int]
    shown: frozenset[int]

    def holds(self, turn_id: int, text: str, lane_id: int) -> bool:
        """Whether a text of a turn holds any of it."""
        if any(name in text for name in self.names):
            return True
        close = lane_id in self.lanes or turn_id in self.shown
        return close and not self.words.isdisjoint(words_in(text))

    def traced(self, turn_id: int, trace: bytes, lane_id: int, ids: Sequence[bytes]) -> bool:
        """Whether a trace names one of the memories, or holds any of it."""
        return any(one in trace for one in ids) or self.holds(turn_id, trace.decode("utf-8", "replace"), lane_id)


def _holding(db: SqlSession, lanes: tuple[Lane, ...], words: frozenset[str], memories: tuple[int, ...]) -> HoldingTurns:
    shown = frozenset(row[0] for number in memories for row in every(db, SQL["shown_to"], (number,)))
    search = _Search(words, tuple(show("memory", number) for number in memories), _ids(db, lanes), shown)
    turns = dict.fromkeys(
        row[0] for page in ("all_records", "all_replies") for row in every(db, SQL[page]) if search.holds(*row)
    )
    ids = [f'"id":{number},'.encode() for number in memories]
    traces = dict.fromkeys(sorted(shown))
    traces |= dict.fromkeys(row[0] for row in every(db, SQL["all_steps"]) if search.holds(*row))
    traces |= dict.fromkeys(
        turn_id
        for turn_id, body, lane_id in every(db, SQL["all_traces"])
        if search.traced(turn_id, zlib.decompress(body), lane_id, ids)
    )
    return HoldingTurns(tuple(turns), tuple(turn_id for turn_id in traces if turn_id not in turns))


def _at_work(db: SqlSession, since: int, lanes: tuple[Lane, ...]) -> int:
    return int(only(db, SQL["turns_at_work"], (since, db.numbers((0, *sorted(_ids(db, lanes))))))[0])


def _revived(db: SqlSession, graves: frozenset[bytes], tombs: TombstoneKeyring) -> tuple[int, ...]:
    there = dict.fromkeys(row[0] for row in every(db, SQL["all_messages"]))
    there |= dict.fromkeys(_named(row for row in every(db, SQL["all_said"]) if row[1]))
    return tuple(
        number
        for number in there
        if not graves.isdisjoint(tombs.compute_tombstones([name_digest(message_name(number))]))
    )


def _forgotten(db: SqlSession, refs: tuple[str, ...], tombs: TombstoneKeyring) -> frozenset[str]:
    graves = tombs.compute_tombstones([name_digest(source_name(ref)) for ref in refs])
    return frozenset(
        ref for ref, hash_ in zip(refs, graves, strict=False) if one(db, SQL["buried"], (hash_,)) is not None
    )


def _places(db: SqlSession, messages: tuple[int, ...], turns: tuple[int, ...]) -> list[Row]:
    """The records of messages and of turns, as lane and position."""
    places = [row for number in messages for row in every(db, SQL["positions_of"], (f"message:{number}",))]
    return places + [row for number in turns for row in every(db, SQL["positions_of_turn"], (number,))]


def _summarised(db: SqlSession, messages: tuple[int, ...], turns: tuple[int, ...]) -> tuple[Lane, ...]:
    first: dict[int, int] = {}
    for lane_id, position in _places(db, messages, turns):
        first[lane_id] = min(position, first.get(lane_id, position))
    ids = [lane for lane, position in first.items() if only(db, SQL["summary_over"], (lane, position))[0] is not None]
    return tuple(Lane(*row) for row in every(db, SQL["lane_names"], (db.numbers((0, *sorted(ids))),)))
