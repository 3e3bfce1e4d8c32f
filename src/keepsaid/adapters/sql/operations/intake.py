"""Intake: stores messages in sets, numbers them, finds duplicates, infers lanes; and advances the heads of lanes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from keepsaid.adapters.sql import query
from keepsaid.adapters.sql.operations import forks, journal
from keepsaid.adapters.sql.query import Row, SqlSession, every, load, one, only, scalar, write_rows
from keepsaid.adapters.sql.tombstones import seal
from keepsaid.domain import strand, views
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Arrival, IntakeResult, Receive, Received
from keepsaid.domain.fetching import AWAIT_MS, AWAITED
from keepsaid.domain.files import FileState
from keepsaid.domain.message import Lane
from keepsaid.errors import StoreError
from keepsaid.text.references import MessageText

SQL = load("intake")
_REMEMBERED_MAX = 50_000

Gains = dict[Lane, list[Receive]]
"""New messages by lane, in order."""

Place = tuple[int, int, int | None]
"""A lane's row id, its head, and the message that was its last before these."""


class LaneHeads:
    """Moves the heads of lanes. It remembers where lanes it has moved stand: only this writer moves them."""

    def __init__(self) -> None:
        self._stand: dict[Lane, tuple[int, int, int]] = {}
        self._waiting: set[Lane] = set()

    def forget(self) -> None:
        """Remember nothing: the last moves were undone."""
        self._stand.clear()
        self._waiting.clear()

    def routed(self, lane: Lane) -> None:
        """Nothing may wait in the lane any more."""
        self._waiting.discard(lane)

    def extend(self, db: SqlSession, gains: Gains) -> dict[Lane, Place]:
        """Count the new messages in; returns the place of every lane after that."""
        places: dict[Lane, Place] = {}
        by_window: dict[int, list[Lane]] = {}
        for lane, gain in gains.items():
            by_window.setdefault(id(gain[0].window), []).append(lane)
        if len(self._stand) > _REMEMBERED_MAX:
            self.forget()
        for lanes in by_window.values():
            window = gains[lanes[0]][0].window
            for part in query.chunks([lane for lane in lanes if lane in self._stand]):
                places |= self._move(db, {lane: gains[lane] for lane in part}, window)
            for part in query.chunks([lane for lane in lanes if lane not in self._stand]):
                places |= self._meet(db, {lane: gains[lane] for lane in part}, window)
        return places

    def _move(self, db: SqlSession, gains: Gains, window: Window) -> dict[Lane, Place]:
        places: dict[Lane, Place] = {}
        rows: list[tuple[object, ...]] = []
        for lane, gain in gains.items():
            lane_id, head, last_id = self._stand[lane]
            count, *counted = _counted(gain)
            rows.append((lane_id, head, head + count, *counted))
            places[lane] = (lane_id, head + count, last_id)
            self._stand[lane] = (lane_id, head + count, gain[-1].arrival.id)
        begun = [(row[0], row[4]) for lane, row in zip(gains, rows, strict=True) if lane not in self._waiting]
        statement = query.many(SQL["extend_known_lanes"], query.row_of(8), len(rows))
        if query.run(db, statement, _bounds(window) + query.flat(rows)) != len(rows):
            raise StoreError("a lane was moved by somebody else")
        if begun:
            write_rows(db, SQL["begin_waiting"], begun)
            self._waiting.update(gains)
        return places

    def _meet(self, db: SqlSession, gains: Gains, window: Window) -> dict[Lane, Place]:
        """Lanes not seen before by this writer, new or stored."""
        rows: list[tuple[object, ...]] = []
        for lane, gain in gains.items():
            count, priority, oldest, newest, last_id, chars = _counted(gain)
            full = count >= window.count_max or chars >= window.chars_max
            due = newest if full else window.due_at(oldest, newest)
            rows.append((*lane, count, priority, oldest, newest, last_id, chars, due))
        extended = query.many(SQL["extend_lanes"], query.row_of(11), len(rows))
        found = every(db, extended, query.flat(rows) + _bounds(window))
        if not found:  # SQLite reads them by one row, which is faster than one for each lane
            read = query.many(SQL["places"], query.row_of(4), len(rows))
            found = json.loads(only(db, read, query.flat(list(gains)))[0])
        places: dict[Lane, Place] = {Lane(*row[:4]): (row[4], row[5], row[6]) for row in found}
        for lane, (lane_id, head, _) in places.items():
            self._stand[lane] = (lane_id, head, gains[lane][-1].arrival.id)
        return places


def _bounds(window: Window) -> list[object]:
    return [window.count_max, window.chars_max, window.window_ms, window.quiet_ms, window.wait_ms]


def _counted(gain: Sequence[Receive]) -> tuple[int, int, int, int, int, int]:
    """Of the new messages of a lane: count, best priority, oldest and newest arrival, last id, characters."""
    last = gain[-1].arrival
    oldest = newest = last.at + gain[-1].clock_back_ms
    priority, chars = last.inbound.priority, len(last.inbound.content.text)
    for commit in gain[:-1]:
        arrival, at = commit.arrival, commit.arrival.at + commit.clock_back_ms
        oldest, newest = min(oldest, at), max(newest, at)
        priority = min(priority, arrival.inbound.priority)
        chars += len(arrival.inbound.content.text)
    return len(gain), priority, oldest, newest, last.id, chars


_CONVERSATIONS_MAX = 1_000

_Place = tuple[str, str, str]


class RecentMessages:
    """Cache of the newest messages of conversations: read from the rows once, then updated by the one writer."""

    def __init__(self) -> None:
        self._recent: dict[_Place, list[strand.RecentMessage]] = {}

    def clear(self) -> None:
        """Forget all: rows were rolled back or deleted."""
        self._recent.clear()

    def trim(self) -> None:
        """Keep few enough conversations; not while messages are being placed that no row holds yet."""
        if len(self._recent) > _CONVERSATIONS_MAX:
            self.clear()

    def infer_lane(self, db: SqlSession, arrival: Arrival) -> strand.Placed:
        place = arrival.inbound.lane[:3]
        recent = self._read(db, place)
        keys = tuple({message.key for message in recent})
        rows = every(db, SQL["answers"], (*place, db.texts(keys), strand.RECORDS_EACH)) if keys else []
        answers = [
            answer
            for key, lane in groupby(rows, lambda row: row[0])
            for answer in strand.answered(key, (row[1:] for row in lane))
        ]
        return strand.strand_of((*recent, *answers), arrival.id, arrival.inbound, arrival.at)

    def add(self, db: SqlSession, arrival: Arrival, key: str) -> None:
        if (message := strand.remembered(arrival.id, arrival.inbound, arrival.at, key)) is not None:
            place = arrival.inbound.lane[:3]
            self._recent[place] = strand.kept(self._read(db, place), message)

    def _read(self, db: SqlSession, place: _Place) -> list[strand.RecentMessage]:
        if place not in self._recent:
            rows = every(db, SQL["lately"], (*place, strand.LATELY_MAX, strand.TEXT_CHARS_MAX))
            self._recent[place] = [_recent_message(row) for row in reversed(rows)]
        return self._recent[place]


def _recent_message(row: Row) -> strand.RecentMessage:
    message_id, key, sender, name, provider_id, reply_to, text, at = row
    said = MessageText(f"message:{message_id}", sender, text, at, name)
    return strand.RecentMessage(message_id, said, key, provider_id, reply_to)


BODIES = load("bodies")

_EXPIRED_EACH = 8
"""Expired rows that one delivery removes: more than it adds, so that the table shrinks to what counts."""


def first_with(db: SqlSession, arrival: Arrival) -> int | None:
    """The id of the message that was stored with this body and still counts; None for a new body or none."""
    return None if arrival.body is None else scalar(db, BODIES["first"], (arrival.body.hash, arrival.at))


def keep(db: SqlSession, arrival: Arrival) -> None:
    """Keep the body of a new message, if it has one, and remove some that expired."""
    if arrival.body is not None:
        db.post(BODIES["expire"], (arrival.at, _EXPIRED_EACH))
        db.post(BODIES["keep"], (arrival.body.hash, arrival.id, arrival.body.until))


def note(db: SqlSession, message_id: int, arrival: Arrival) -> None:
    """Note that a message was delivered under another id, unless there are too many notes already."""
    delivery = (arrival.inbound.marks.external_id or "", arrival.inbound.content.event, arrival.at)
    db.post(BODIES["note"], (message_id, *delivery, views.Redelivery.NOTED_MAX))


def redeliveries(db: SqlSession, message_ids: Sequence[int]) -> tuple[views.Redelivery, ...]:
    """The other deliveries of some messages, oldest first."""
    found = every(db, BODIES["redeliveries"], (db.numbers(message_ids),)) if message_ids else ()
    return tuple(views.Redelivery(*row) for row in found)


MARKED_EACH = 64
"""Messages of a lane are linked backwards; every n-th is marked, so that no walk is longer."""

_FOLD_LEAST = 16_384
"""Keys in one sorted run."""

_ENDLESSLY = 2**63 - 1
"""Up to which id the index holds the keys of messages where each goes into it at once."""


class MessageInserter:
    """Stores messages for one writer.

    The index of keys is random on the disk, so it is extended in sorted runs (`fold`) and not with every
    message. Until then the keys of newer messages stand in their rows, all with ids above `_until`, and in
    `_tail` here. A key in `_tail` only points at a row: the row decides, because its commit may have failed.
    """

    def __init__(self, db: SqlSession) -> None:
        self._until: int = only(db, SQL["keyed_until"])[0]
        self._tail: dict[bytes, int] = dict(every(db, SQL["unkeyed"]))
        self._version = db.version()
        self._lanes = LaneHeads()
        self._recent = RecentMessages()
        self._fold_soon = False

    @property
    def until(self) -> int:
        """The index holds the keys of all messages up to this id."""
        return self._until

    def want_fold(self) -> None:
        """Fold all keys into the index at the next upkeep, however few there are."""
        self._fold_soon = True

    def routed(self, lane: Lane) -> None:
        """Note that a lane is about to be routed: nothing may wait in it afterwards."""
        self._lanes.routed(lane)

    def undone(self) -> None:
        """Drop what is cached of lanes and messages: a transaction was rolled back."""
        self._lanes.forget()
        self._recent.clear()

    def pruned(self) -> None:
        """Drop what is cached of messages: some were pruned."""
        self._recent.clear()

    def receive(self, db: SqlSession, commits: Sequence[Receive]) -> list[Received]:
        """Store a set of messages in a few statements, whatever its size; those with a body one after another."""
        if not any([commit.arrival.body for commit in commits]):  # noqa: C419 - a generator costs twice as much
            return self._received(db, commits)
        return [received for commit in commits for received in self._signed(db, commit)]

    def _signed(self, db: SqlSession, commit: Receive) -> list[Received]:
        """Store one message, unless its body was stored before and still counts."""
        arrival = commit.arrival
        if (first_id := first_with(db, arrival)) is not None:
            note(db, first_id, arrival)
            return [Received(IntakeResult.DUPLICATE, first_id, *_place(db, first_id, arrival))]
        received = self._received(db, [commit])
        if received[0].intake is IntakeResult.STORED:
            keep(db, arrival)
        return received

    def _received(self, db: SqlSession, commits: Sequence[Receive]) -> list[Received]:
        self._catch_up(db)
        known = self._known(db, [commit.arrival for commit in commits])
        fresh = [commit for commit in commits if commit.arrival.id not in known]
        gains = self._by_lane(db, fresh)
        places = self._lanes.extend(db, gains)
        rows, marks, stored = list[Row](), list[Row](), dict[int, Received]()
        for lane, gain in gains.items():
            lane_id, head, previous_id = places[lane]
            for number, commit in enumerate(gain, head - len(gain) + 1):
                arrival = commit.arrival
                rows.append((arrival.id, lane_id, number, previous_id, *_columns(arrival)))
                stored[arrival.id] = Received(IntakeResult.STORED, arrival.id, lane, number)
                previous_id = arrival.id
                if number % MARKED_EACH == 0:
                    marks.append((lane_id, number, arrival.id))
            if head == len(gain):
                forks.begin(db, lane, lane_id, gain[0].arrival)
        write_rows(db, SQL["keep_messages"], rows)
        write_rows(db, SQL["keep_marks"], marks)
        write_rows(db, SQL["keep_addressed"], [(one.arrival.id,) for one in fresh if one.arrival.inbound.addressed])
        write_rows(db, SQL["keep_files"], [row for one in fresh if one.arrival.inbound.files for row in _files(one)])
        query.post_each(db, SQL["keep_placed"], [row for one in fresh for row in forks.placing(one.arrival)])
        for counted in Counter(lane.channel for lane, gain in gains.items() for _ in gain).items():
            db.post(SQL["heard"], counted)
        # the keys of new messages; one whose id the index has passed goes into the index at once
        keyed = [(new.key_hash, new.content_hash, new.id) for new in (one.arrival for one in fresh) if new.key_hash]
        self._tail.update((key, id_) for key, _, id_ in keyed)
        write_rows(db, SQL["keep_keys"], [row for row in keyed if row[2] <= self._until])
        if stored:
            journal.write_received(db, list(stored.values()), commits[-1].arrival.at)
        return [_receipt(commit.arrival.id, known, stored) for commit in commits]

    def _catch_up(self, db: SqlSession) -> None:
        """Read again after another process wrote: one that is taken for dead may still be at work."""
        if (version := db.version()) != self._version:
            self._version = version
            if self._until < _ENDLESSLY:
                self._until = only(db, SQL["keyed_until"])[0]
                self._tail = dict(every(db, SQL["unkeyed"]))
            self.undone()

    def _by_lane(self, db: SqlSession, commits: Sequence[Receive]) -> Gains:
        """The new messages of each lane, in order; a reply joins the lane of its target, in this set or stored."""
        gains: Gains = {}
        just_named: dict[Lane, str] = {}
        self._recent.trim()
        for commit in commits:
            inbound, rules = commit.arrival.inbound, commit.lanes
            lane, marks = inbound.lane, inbound.marks
            if marks.reply_to is not None and rules.join and not inbound.topic:
                named = scalar(db, SQL["target_lane"], (marks.reply_to, *lane[:3]))
                named = named or just_named.get(lane._replace(key=marks.reply_to))
                lane = lane._replace(key=named or lane.key)
            elif rules.infer and strand.inferable(inbound):
                placed = self._recent.infer_lane(db, commit.arrival)
                lane = lane._replace(key=placed.key)
                db.post(SQL["keep_placed"], (commit.arrival.id, placed.reason))
            if marks.provider_id is not None:
                just_named.setdefault(lane._replace(key=marks.provider_id), lane.key)
            if rules.infer:
                self._recent.add(db, commit.arrival, lane.key)
            gains.setdefault(lane, []).append(commit)
        return gains

    def _known(self, db: SqlSession, arrivals: Sequence[Arrival]) -> dict[int, Received]:
        """Those that came before, by the id they would have had."""
        keys = tuple(arrival.key_hash for arrival in arrivals if arrival.key_hash is not None)
        if not keys:
            return {}
        indexed = {row[0]: row[1:] for row in every(db, SQL["known_keys"], (db.texts(keys),))}
        known: dict[int, Received] = {}
        first_here: dict[bytes, Arrival] = {}
        for arrival in arrivals:
            if arrival.key_hash is None:
                continue
            earlier = first_here.setdefault(arrival.key_hash, arrival)
            if (found := indexed.get(arrival.key_hash) or self._unfolded(db, arrival.key_hash)) is not None:
                content, first_id = found
                known[arrival.id] = _repeated(arrival, content, first_id, _place(db, first_id, arrival))
            elif earlier is not arrival:
                known[arrival.id] = _repeated(arrival, earlier.content_hash, earlier.id, (earlier.inbound.lane, 0))
        return known

    def _unfolded(self, db: SqlSession, key: bytes) -> tuple[bytes, int] | None:
        first_id = self._tail.get(key)
        row = None if first_id is None else one(db, SQL["still_there"], (first_id, key))
        return None if row is None or first_id is None else (row[0], first_id)

    def fold(self, db: SqlSession, at_least: int = _FOLD_LEAST) -> None:
        """Move the keys of newer messages into the index, in one transaction of its own, once there are many."""
        if len(self._tail) < (1 if self._fold_soon else at_least):
            return
        with db.transaction():
            until = only(db, SQL["last_id"])[0]
            db.post(SQL["fold_keys"], (self._until, until))
            db.post(SQL["folded"], (until,))
        self._until = max(self._until, until)
        self._tail.clear()
        self._fold_soon = False


def _files(commit: Receive) -> list[Row]:
    """The rows of what came with a message and can be fetched."""
    arrival, state = commit.arrival, str(FileState.WAITING)
    until = arrival.at + commit.clock_back_ms + AWAIT_MS
    return [
        (arrival.id, n, state, one.name, one.kind, one.size, one.ref, until if one.ref == AWAITED else 0)
        for n, one in enumerate(arrival.inbound.files, 1)
    ]


def _receipt(arrival_id: int, known: dict[int, Received], stored: dict[int, Received]) -> Received:
    """The receipt of one message; a copy within the set points at where the first of them went."""
    if (repeated := known.get(arrival_id)) is None:
        return stored[arrival_id]
    first = stored.get(repeated.id)
    return repeated if first is None else Received(repeated.intake, first.id, first.lane, first.number)


def _repeated(arrival: Arrival, content: bytes, first_id: int, place: tuple[Lane, int]) -> Received:
    intake = IntakeResult.DUPLICATE if content == arrival.content_hash else IntakeResult.CONFLICT
    return Received(intake, first_id, *place)


def _place(db: SqlSession, message_id: int, arrival: Arrival) -> tuple[Lane, int]:
    row = one(db, SQL["place"], (message_id,))
    return (Lane(*row[:4]), row[4]) if row else (arrival.inbound.lane, 0)


def _columns(arrival: Arrival) -> tuple[object, ...]:
    inbound = arrival.inbound
    origin, content, marks = inbound.origin, inbound.content, inbound.marks
    who = (origin.sender, origin.name, origin.direct, str(origin.trust))
    which = (marks.external_id, marks.provider_id, marks.reply_to, inbound.topic, inbound.reply_url)
    what = (content.event, content.payload, content.text, inbound.priority, arrival.at)
    return (*who, *which, *what, arrival.key_hash, arrival.content_hash, seal(inbound, arrival.at))
