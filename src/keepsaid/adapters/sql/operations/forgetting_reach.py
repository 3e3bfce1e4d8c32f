"""Reach of a forgetting request: every row of the operational store that it names, and how the words go."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from keepsaid.adapters.sql.operations import routing, schedules, views
from keepsaid.adapters.sql.operations.forgetting import SQL, emptied_findings, read_targets, work_made, work_named
from keepsaid.adapters.sql.query import Row, SqlReaders, SqlSession, SqlView, column, every, one, only, reads, scalar
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain import forgetting as domain
from keepsaid.domain import ids, memory
from keepsaid.domain.forgetting import HoldingTurns
from keepsaid.domain.message import Lane, Origin, Trust
from keepsaid.values import frozen


def _forgetting(row: Row) -> domain.Forgetting:
    return domain.Forgetting(*(*row[:6], tuple(sorted(json.loads(row[6]).items())), row[7]))


def _newest(db: SqlSession, limit: int) -> Sequence[domain.Forgetting]:
    return [_forgetting(row) for row in every(db, SQL["newest"], (limit,))]


def _unfinished(db: SqlSession) -> Sequence[domain.Forgetting]:
    return [_forgetting(row) for row in every(db, SQL["unfinished"])]


def _undoable(db: SqlSession) -> Sequence[domain.Forgetting]:
    return [_forgetting(row) for row in every(db, SQL["undoable"])]


def _one(db: SqlSession, number: int) -> domain.Forgetting | None:
    return next((_forgetting(row) for row in every(db, SQL["row"], (number,))), None)


def _tombstones(db: SqlSession) -> tuple[bytes, ...]:
    return tuple(column(db, SQL["tombstones"]))


def _revived(db: SqlSession, hashes: frozenset[bytes], keyring: TombstoneKeyring) -> domain.Work:
    there = dict.fromkeys(column(db, SQL["all_messages"]))
    there |= dict.fromkeys(_named(row for row in every(db, SQL["all_said"]) if row[1]))

    def buried(digests: dict[int, bytes]) -> tuple[int, ...]:
        tombstones = keyring.compute_tombstones(digests.values())
        return tuple(number for number, hash_ in zip(digests, tombstones, strict=False) if hash_ in hashes)

    return domain.Work(
        buried({number: domain.work_digest("task", number) for number in column(db, SQL["all_worded_tasks"])}),
        buried({number: domain.work_digest("schedule", number) for number in column(db, SQL["all_worded_schedules"])}),
        buried({number: domain.name_digest(domain.message_name(number)) for number in there}),
    )


class SqlForgettings(SqlView):
    """Requests to forget, and what they reach; read only."""

    def __init__(self, readers: SqlReaders, keyring: TombstoneKeyring) -> None:
        super().__init__(readers)
        self._keyring = keyring

    newest = reads(_newest)
    unfinished = reads(_unfinished)
    undoable = reads(_undoable)
    one = reads(_one)
    get_targets = reads(read_targets)
    tombstones = reads(_tombstones)

    async def revived(self, hashes: Sequence[bytes]) -> domain.Work:
        return await self._readers.run(_revived, frozenset(hashes), self._keyring)


def _messages(db: SqlSession, wish: domain.ForgetSelector) -> tuple[int, ...]:
    found = dict.fromkeys(wish.messages)
    if wish.conversation:
        for lane in every(db, SQL["lanes_of_conversation"], (wish.conversation,)):
            found |= dict.fromkeys(column(db, SQL["messages_of_lane"], lane))
            found |= dict.fromkeys(_named(every(db, SQL["refs_of_lane"], lane)))
    text = wish.text.casefold()
    if wish.person or text:
        for message_id, *origin, body in every(db, SQL["all_messages"]):
            by_person = bool(wish.persons) and (_person(*origin) in wish.persons or origin[2] == wish.person)
            if by_person or (text and text in body.casefold()):
                found[message_id] = None
    if text:
        found |= dict.fromkeys(_named(row for row in every(db, SQL["all_said"]) if text in row[1].casefold()))
    return tuple(found)


def _person(channel: str, account: str, sender: str, trust: str) -> str:
    return memory.person_of(Origin(channel, account, "", sender, trust=Trust(trust)))


def _named(rows: Iterable[Row]) -> Iterator[int]:
    """The messages that records show."""
    for ref, *_ in rows:
        kind, _, number = str(ref).partition(":")
        if kind == "message" and number.isdecimal():
            yield int(number)


def _answering(db: SqlSession, messages: Sequence[int]) -> tuple[int, ...]:
    found: dict[int, None] = {}
    for message_id in messages:
        place = one(db, SQL["place"], (message_id,))
        batch_id = None if place is None else scalar(db, views.SQL["batch_of"], place)
        found |= dict.fromkeys(column(db, SQL["turns_answering"], (f"message:{message_id}", batch_id)))
    return tuple(found)


def _list_texts(db: SqlSession, messages: Sequence[int]) -> tuple[str, ...]:
    return tuple({text: None for number in messages for text in column(db, SQL["said_in"], (number,)) if text})


def _list_attributed_texts(db: SqlSession, messages: Sequence[int]) -> tuple[tuple[str, str], ...]:
    spoken = (row for number in messages for row in every(db, SQL["spoken_in"], (number,)))
    return tuple((_person(*origin), text) for *origin, text in spoken)


def _lanes(db: SqlSession, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
    there = {lane_id for number in messages for lane_id in column(db, SQL["lanes_of_message"], (number,))}
    there |= {lane_id for number in turns for lane_id in column(db, SQL["lanes_of_turn"], (number,))}
    return _lane_names(db, there)


def _lane_names(db: SqlSession, lanes: Iterable[int]) -> tuple[Lane, ...]:
    return tuple(Lane(*row) for row in every(db, SQL["lane_names"], (db.numbers((0, *sorted(lanes))),)))


def _records(db: SqlSession, messages: Sequence[int], turns: Sequence[int]) -> list[Row]:
    """The records of messages and turns, as lane and position."""
    records = [row for number in messages for row in every(db, SQL["positions_of"], (f"message:{number}",))]
    return records + [row for number in turns for row in every(db, SQL["positions_of_turn"], (number,))]


def _summarised(db: SqlSession, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
    first: dict[int, int] = {}
    for lane_id, position in _records(db, messages, turns):
        first[lane_id] = min(position, first.get(lane_id, position))
    return _lane_names(db, [place[0] for place in first.items() if scalar(db, SQL["summary_over"], place) is not None])


def _forgotten(db: SqlSession, refs: Sequence[str], keyring: TombstoneKeyring) -> frozenset[str]:
    tombstones = keyring.compute_tombstones([domain.name_digest(domain.source_name(ref)) for ref in refs])
    known = zip(refs, tombstones, strict=False)
    return frozenset(ref for ref, tombstone in known if one(db, SQL["buried"], (tombstone,)) is not None)


_NAME_BEGINS, _NAME_LENGTH = f"{ids.PREFIXES['memory']}_", len(ids.show("memory", 0))
_TRACED = re.compile(rb'"id":(\d+),')
"""A memory in the trace of a turn."""


@frozen
class _Search:
    """Words to find in these lanes and in turns that were shown the memories, and memory names to find anywhere."""

    words: frozenset[str]
    names: frozenset[str]
    lanes: frozenset[int]
    shown: frozenset[int]

    def matches(self, turn_id: int, text: str, lane_id: int) -> bool:
        if self._names_any(text):
            return True
        close = lane_id in self.lanes or turn_id in self.shown
        return close and not self.words.isdisjoint(domain.words_in(text))

    def _names_any(self, text: str) -> bool:
        """Whether a text has a name in it: in one pass, however many memories there are."""
        at = text.find(_NAME_BEGINS)
        while at >= 0:
            if text[at : at + _NAME_LENGTH] in self.names:
                return True
            at = text.find(_NAME_BEGINS, at + 1)
        return False


def _holding(db: SqlSession, lanes: Sequence[Lane], words: frozenset[str], memories: Sequence[int]) -> HoldingTurns:
    shown = frozenset(turn_id for number in memories for turn_id in column(db, SQL["shown_to"], (number,)))
    names = frozenset(ids.show("memory", number) for number in memories)
    search = _Search(words, names, _ids(db, lanes), shown)
    written = (row for statement in ("all_records", "all_replies") for row in every(db, SQL[statement]))
    turns = dict.fromkeys(row[0] for row in written if search.matches(*row))
    traces = dict.fromkeys(sorted(shown))
    traces |= dict.fromkeys(row[0] for row in every(db, SQL["all_steps"]) if search.matches(*row))
    named = frozenset(str(number).encode() for number in memories)
    for turn_id, packed, lane_id in every(db, SQL["all_traces"]):
        trace = zlib.decompress(packed)
        if not named.isdisjoint(_TRACED.findall(trace)) or search.matches(
            turn_id, trace.decode("utf-8", "replace"), lane_id
        ):
            traces[turn_id] = None
    return HoldingTurns(tuple(turns), tuple(turn_id for turn_id in traces if turn_id not in turns))


_TOTALS = ("messages", "staged", "steps", "traces", "uses", "tasks", "schedules")


def _count(db: SqlSession, targets: domain.ForgetTargets) -> domain.Counts:
    made = work_made(db, targets.messages, targets.turns)
    tasks, timed = {*targets.tasks, *made.tasks}, {*targets.schedules, *made.schedules}
    turns = (targets.turns, {*targets.turns, *targets.traces})
    sets = (targets.messages, *turns, targets.memories, tasks, timed)
    totals = only(db, SQL["totals"], tuple(db.numbers((0, *sorted(one))) for one in sets))
    counts = Counter(dict(zip(_TOTALS, totals, strict=True)))
    counts["replies"] = sum(only(db, SQL["reply_holds"], (number,))[0] for number in _replies(db, targets))
    places: dict[int, set[int]] = {}
    for lane_id, position in _records(db, targets.messages, targets.turns):
        places.setdefault(lane_id, set()).add(position)
    for lane_id, positions in places.items():
        counts["records"] += only(db, SQL["record_count"], (lane_id, db.numbers((0, *sorted(positions)))))[0]
        counts["summaries"] += only(db, SQL["summary_count"], (lane_id, min(positions)))[0]
        counts["statements"] += sum(gone for *_, gone in emptied_findings(db, lane_id, positions, targets.words))
    return domain.summed(tuple(counts.items()))


def _replies(db: SqlSession, targets: domain.ForgetTargets) -> set[int]:
    """The replies and notices of turns, tasks and schedules that go."""
    found = {number for turn in targets.turns for name in _REPLIES_OF for number in column(db, SQL[name], (turn,))}
    for task in targets.tasks:
        found.update(column(db, SQL["notices_of"], (ids.show("task", task),)))
    for schedule in targets.schedules:
        found.update(column(db, schedules.SQL["posted_by"], (schedule,)))
    return found


_REPLIES_OF = ("replies_of", "notices_of_made")


def _at_work(db: SqlSession, since: int, lanes: Sequence[Lane]) -> int:
    return int(only(db, SQL["turns_at_work"], (since, db.numbers((0, *sorted(_ids(db, lanes))))))[0])


def _ids(db: SqlSession, lanes: Iterable[Lane]) -> frozenset[int]:
    return frozenset(number for lane in lanes if (number := routing.lane_id_of(db, lane)) is not None)


class SqlReach(SqlView):
    """Everything that a request to forget reaches; read only."""

    def __init__(self, readers: SqlReaders, keyring: TombstoneKeyring) -> None:
        super().__init__(readers)
        self._keyring = keyring

    messages = reads(_messages)
    work = reads(work_named)
    made = reads(work_made)
    answering = reads(_answering)
    list_texts = reads(_list_texts)
    list_attributed_texts = reads(_list_attributed_texts)
    lanes = reads(_lanes)
    summarised = reads(_summarised)
    holding = reads(_holding)
    at_work = reads(_at_work)
    count = reads(_count)

    async def forgotten(self, refs: Sequence[str]) -> frozenset[str]:
        return await self._readers.run(_forgotten, refs, self._keyring)
