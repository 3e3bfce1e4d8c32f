"""Intake: stores messages in sets, numbers them, tells duplicates from conflicts, and infers lanes from recent talk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import apsw

from keepsaid.adapters.sql.operations import journal
from keepsaid.adapters.sql.operations.lane_heads import Gains, LaneHeads
from keepsaid.adapters.sql.query import every, load, one, only, write_rows
from keepsaid.adapters.sql.session import Row, SqlSession
from keepsaid.adapters.sql.tombstones import seal
from keepsaid.domain import strand
from keepsaid.domain.commits import Arrival, Receive, Received
from keepsaid.domain.commits import IntakeResult as Verdict
from keepsaid.domain.lane import Lane
from keepsaid.domain.strand import RecentMessage
from keepsaid.domain.views import Redelivery
from keepsaid.text.references import MessageText

SQL = load("intake")
_CONVERSATIONS_MAX = 1_000

_Place = tuple[str, str, str]


class RecentMessages:
    """Cache of the newest messages of conversations: read from the rows once, then updated by the one writer."""

    def __init__(self) -> None:
        self._heard: dict[_Place, list[RecentMessage]] = {}

    def forget(self) -> None:
        """Know nothing: rows were taken back, or are gone."""
        self._heard.clear()

    def trim(self) -> None:
        """Keep few enough conversations; not while messages are being placed that no row holds yet."""
        if len(self._heard) > _CONVERSATIONS_MAX:
            self.forget()

    def infer_lane(self, db: SqlSession, arrival: Arrival) -> strand.Placed:
        """Infer the lane of a new message."""
        place = _recent_place(arrival.inbound.lane)
        heard = self._before(db, place)
        keys = tuple({one.key for one in heard})
        answers = _answers(db, place, keys) if keys else []
        return strand.strand_of((*heard, *answers), arrival.id, arrival.inbound, arrival.at)

    def add(self, db: SqlSession, arrival: Arrival, key: str) -> None:
        """A new message has found its lane."""
        spoken = strand.remembered(arrival.id, arrival.inbound, arrival.at, key)
        if spoken is not None:
            place = _recent_place(arrival.inbound.lane)
            self._heard[place] = strand.kept(self._before(db, place), spoken)

    def _before(self, db: SqlSession, place: _Place) -> list[RecentMessage]:
        heard = self._heard.get(place)
        if heard is None:
            rows = every(db, SQL["lately"], (*place, strand.LATELY_MAX, strand.TEXT_CHARS_MAX))
            heard = self._heard[place] = [_read_recent_message(row) for row in reversed(rows)]
        return heard


def _recent_place(lane: Lane) -> _Place:
    return lane.channel, lane.account, lane.conversation


def _read_recent_message(row: Row) -> RecentMessage:
    message_id, key, sender, name, provider_id, reply_to, text, at = row
    return RecentMessage(
        message_id, MessageText(f"message:{message_id}", sender, text, at, name), key, provider_id, reply_to
    )


def _answers(db: SqlSession, place: _Place, keys: tuple[str, ...]) -> list[RecentMessage]:
    rows = every(db, SQL["answers"], (*place, apsw.carray(keys), strand.RECORDS_EACH))
    return [
        one
        for key, lane in groupby(rows, lambda row: row[0])
        for one in strand.answered(key, (row[1:] for row in lane))
    ]


BODIES = load("bodies")

_EXPIRED_EACH = 8
"""Expired rows that one delivery removes: more than it adds, so that the table shrinks to what counts."""


def first_with(db: SqlSession, arrival: Arrival) -> int | None:
    """The id of the message that was stored with this body and still counts; None for a new body or none."""
    if arrival.body is None:
        return None
    row = one(db, BODIES["first"], (arrival.body.hash, arrival.at))
    return None if row is None else int(row[0])


def keep(db: SqlSession, arrival: Arrival) -> None:
    """Keep the body of a new message, if it has one, and remove some that expired."""
    if arrival.body is not None:
        db.execute(BODIES["expire"], (arrival.at, _EXPIRED_EACH))
        db.execute(BODIES["keep"], (arrival.body.hash, arrival.id, arrival.body.until))


def note(db: SqlSession, message_id: int, arrival: Arrival) -> None:
    """Note that a message was delivered under another id, unless there are too many notes already."""
    marks, content = arrival.inbound.marks, arrival.inbound.content
    db.execute(BODIES["note"], (message_id, marks.external_id or "", content.event, arrival.at, Redelivery.NOTED_MAX))


def redeliveries(db: SqlSession, message_ids: Sequence[int]) -> tuple[Redelivery, ...]:
    """The other deliveries of some messages, oldest first."""
    if not message_ids:
        return ()
    return tuple(Redelivery(*row) for row in every(db, BODIES["redeliveries"], (db.numbers(tuple(message_ids)),)))


MARKED_EACH = 64
"""Messages of a lane are linked backwards; every so many one is marked, so that no walk is longer."""

_FOLD_LEAST = 16_384
"""Keys in one sorted run."""


class MessageInserter:
    """Stores messages for one writer.

    The index of keys is random on the disk, so it is extended in sorted runs (`fold`) and not with every
    message. Until then the keys of newer messages stand in their rows, all with ids above `_until`, and in
    `_tail` here. A key in `_tail` only points at a row: the row decides, because its commit may have failed.
    """

    def __init__(self, db: SqlSession) -> None:
        self._until: int = only(db, SQL["keyed_until"])[0]
        self._tail: dict[bytes, int] = dict(every(db, SQL["unkeyed"]))
        self._version: int = only(db, "PRAGMA data_version")[0]
        self._lanes = LaneHeads()
        self._lately = RecentMessages()
        self._wanted = False

    @property
    def until(self) -> int:
        """The index holds the keys of all messages up to this id."""
        return self._until

    def want_fold(self) -> None:
        """Let the index take in all keys at the next upkeep, however few there are."""
        self._wanted = True

    def routed(self, lane: Lane) -> None:
        """A lane is about to be routed, so that nothing may wait in it afterwards."""
        self._lanes.routed(lane)

    def undone(self) -> None:
        """A transaction was rolled back: what was learned of lanes in it may not be so."""
        self._lanes.forget()
        self._lately.forget()

    def pruned(self) -> None:
        """Messages are gone."""
        self._lately.forget()

    def receive(self, db: SqlSession, commits: Sequence[Receive]) -> list[Received]:
        """Store a set of messages in a few statements, whatever its size; those with a body one after another."""
        if not any([commit.arrival.body for commit in commits]):  # noqa: C419 - a generator costs twice as much
            return self._received(db, commits)
        return [received for commit in commits for received in self._signed(db, commit)]

    def _signed(self, db: SqlSession, commit: Receive) -> list[Received]:
        """Store one message, unless its body was stored before and still counts."""
        arrival = commit.arrival
        first_id = first_with(db, arrival)
        if first_id is not None:
            note(db, first_id, arrival)
            return [Received(Verdict.DUPLICATE, first_id, *_place(db, first_id, arrival))]
        received = self._received(db, [commit])
        if received[0].intake is Verdict.STORED:
            keep(db, arrival)
        return received

    def _received(self, db: SqlSession, commits: Sequence[Receive]) -> list[Received]:
        self._catch_up(db)
        known = self._known(db, [commit.arrival for commit in commits])
        fresh = [commit for commit in commits if commit.arrival.id not in known]
        gains = self._by_lane(db, fresh)
        places = self._lanes.extend(db, gains)
        rows: list[tuple[object, ...]] = []
        stored: dict[int, Received] = {}
        marks: list[tuple[object, ...]] = []
        for lane, gain in gains.items():
            lane_id, head, previous_id = places[lane]
            for number, commit in enumerate(gain, head - len(gain) + 1):
                arrival = commit.arrival
                rows.append((arrival.id, lane_id, number, previous_id, *_columns(arrival)))
                stored[arrival.id] = Received(Verdict.STORED, arrival.id, lane, number)
                previous_id = arrival.id
                if number % MARKED_EACH == 0:
                    marks.append((lane_id, number, arrival.id))
        write_rows(db, SQL["keep_messages"], rows)
        write_rows(db, SQL["keep_marks"], marks)
        heard: Counter[str] = Counter()
        for lane, gain in gains.items():
            heard[lane.channel] += len(gain)
        for counted in heard.items():
            db.execute(SQL["heard"], counted)
        self._name(db, [commit.arrival for commit in fresh])
        if stored:
            journal.write_received(db, list(stored.values()), commits[-1].arrival.at)
        return [_receipt(commit.arrival.id, known, stored) for commit in commits]

    def _catch_up(self, db: SqlSession) -> None:
        """Learn what another process stored: one that is taken for dead may be at work beside its successor."""
        version: int = only(db, "PRAGMA data_version")[0]
        if version != self._version:
            self._version = version
            self._until = only(db, SQL["keyed_until"])[0]
            self._tail = dict(every(db, SQL["unkeyed"]))
            self.undone()

    def _by_lane(self, db: SqlSession, commits: Sequence[Receive]) -> Gains:
        """The new messages of each lane, in order; a reply joins the lane of its target, in this set or stored."""
        gains: Gains = {}
        just_named: dict[Lane, str] = {}
        self._lately.trim()
        for commit in commits:
            inbound, rules = commit.arrival.inbound, commit.lanes
            lane, marks = inbound.lane, inbound.marks
            if marks.reply_to is not None and rules.join and not inbound.topic:
                named = _target_key(db, lane, marks.reply_to) or just_named.get(lane._replace(key=marks.reply_to))
                lane = lane._replace(key=named or lane.key)
            elif rules.infer and strand.inferable(inbound):
                placed = self._lately.infer_lane(db, commit.arrival)
                lane = lane._replace(key=placed.key)
                db.execute(SQL["keep_placed"], (commit.arrival.id, placed.reason))
            if marks.provider_id is not None:
                just_named.setdefault(lane._replace(key=marks.provider_id), lane.key)
            if rules.infer:
                self._lately.add(db, commit.arrival, lane.key)
            if lane in gains:
                gains[lane].append(commit)
            else:
                gains[lane] = [commit]
        return gains

    def _name(self, db: SqlSession, fresh: Sequence[Arrival]) -> None:
        """Remember the keys of new messages; one whose id the index has passed goes into the index at once."""
        late: list[tuple[object, ...]] = []
        for arrival in fresh:
            if arrival.key_hash is None:
                continue
            self._tail[arrival.key_hash] = arrival.id
            if arrival.id <= self._until:
                late.append((arrival.key_hash, arrival.content_hash, arrival.id))
        write_rows(db, SQL["keep_keys"], late)

    def _known(self, db: SqlSession, arrivals: Sequence[Arrival]) -> dict[int, Received]:
        """Those that came before, by the id they would have had."""
        keys = tuple(arrival.key_hash for arrival in arrivals if arrival.key_hash is not None)
        if not keys:
            return {}
        indexed = {row[0]: row[1:] for row in every(db, SQL["known_keys"], (apsw.carray(keys),))}
        known: dict[int, Received] = {}
        first_here: dict[bytes, Arrival] = {}
        for arrival in arrivals:
            if arrival.key_hash is None:
                continue
            earlier = first_here.setdefault(arrival.key_hash, arrival)
            found = indexed.get(arrival.key_hash) or self._unfolded(db, arrival.key_hash)
            if found is not None:
                content, first_id = found
                known[arrival.id] = _repeated(arrival, content, first_id, _place(db, first_id, arrival))
            elif earlier is not arrival:
                place = (earlier.inbound.lane, 0)
                known[arrival.id] = _repeated(arrival, earlier.content_hash, earlier.id, place)
        return known

    def _unfolded(self, db: SqlSession, key: bytes) -> tuple[bytes, int] | None:
        first_id = self._tail.get(key)
        row = None if first_id is None else one(db, SQL["still_there"], (first_id, key))
        return None if row is None or first_id is None else (row[0], first_id)

    def fold(self, db: SqlSession, at_least: int = _FOLD_LEAST) -> None:
        """Move the keys of newer messages into the index, in one transaction of its own, once there are many."""
        if len(self._tail) < (1 if self._wanted else at_least):
            return
        with db.transaction():
            until = only(db, SQL["last_id"])[0]
            db.execute(SQL["fold_keys"], (self._until, until))
            db.execute(SQL["folded"], (until,))
        self._until = max(self._until, until)
        self._tail.clear()
        self._wanted = False


def _receipt(arrival_id: int, known: dict[int, Received], stored: dict[int, Received]) -> Received:
    """The receipt of one message; a copy within the set points at where the first of them went."""
    repeated = known.get(arrival_id)
    if repeated is None:
        return stored[arrival_id]
    first = stored.get(repeated.id)
    return repeated if first is None else Received(repeated.intake, first.id, first.lane, first.number)


def _repeated(arrival: Arrival, content: bytes, first_id: int, place: tuple[Lane, int]) -> Received:
    intake = Verdict.DUPLICATE if content == arrival.content_hash else Verdict.CONFLICT
    return Received(intake, first_id, *place)


def _place(db: SqlSession, message_id: int, arrival: Arrival) -> tuple[Lane, int]:
    row = one(db, SQL["place"], (message_id,))
    return (Lane(*row[:4]), row[4]) if row else (arrival.inbound.lane, 0)


def _target_key(db: SqlSession, lane: Lane, provider_id: str) -> str | None:
    bound = (provider_id, lane.channel, lane.account, lane.conversation)
    row = one(db, SQL["target_lane"], bound)
    return str(row[0]) if row else None


def _columns(arrival: Arrival) -> tuple[object, ...]:
    inbound = arrival.inbound
    origin, content, marks = inbound.origin, inbound.content, inbound.marks
    return (
        origin.sender,
        origin.name,
        origin.direct,
        str(origin.trust),
        marks.external_id,
        marks.provider_id,
        marks.reply_to,
        inbound.topic,
        inbound.reply_url,
        content.event,
        content.payload,
        content.text,
        inbound.priority,
        arrival.at,
        arrival.key_hash,
        arrival.content_hash,
        seal(inbound, arrival.at),
    )
