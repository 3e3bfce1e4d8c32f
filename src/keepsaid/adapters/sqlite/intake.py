"""Intake: stores messages in sets, gives each its number, and tells duplicates from conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import apsw

from keepsaid.adapters.sqlite.query import every, one, only
from keepsaid.adapters.sqlite.statements import chunks, flat, load, many
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Arrival, Intake, Receive, Received
from keepsaid.domain.lane import Lane

SQL = load("intake")
_KEY_ROW = "(?, ?, ?)"
_LANE_ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MESSAGE_ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(slots=True)
class _Gain:
    """What a set of messages adds to one lane."""

    window: Window
    arrivals: list[Arrival] = field(default_factory=list)


def receive(db: apsw.Connection, commits: Sequence[Receive]) -> list[Received]:
    """Store a set of messages in three statements, whatever its size."""
    known = _known(db, [commit.arrival for commit in commits])
    gains = _by_lane(db, [commit for commit in commits if commit.arrival.id not in known])
    places = _extend_lanes(db, gains)
    rows: list[tuple[object, ...]] = []
    stored: dict[int, Received] = {}
    for lane, gain in gains.items():
        lane_id, head = places[lane]
        first = head - len(gain.arrivals) + 1
        for number, arrival in enumerate(gain.arrivals, first):
            rows.append(_message_row(arrival, lane_id, number))
            stored[arrival.id] = Received(Intake.STORED, arrival.id, lane, number)
    for run in chunks(rows):
        db.execute(many(SQL["keep_messages"], _MESSAGE_ROW, len(run)), flat(run))
    return [_receipt(commit.arrival.id, known, stored) for commit in commits]


def _receipt(arrival_id: int, known: Mapping[int, Received], stored: Mapping[int, Received]) -> Received:
    """What is told of one of the set; a repeat of another of it names the place that other one got."""
    before = known.get(arrival_id)
    if before is None:
        return stored[arrival_id]
    first = stored.get(before.id)
    return before if first is None else replace(first, intake=before.intake)


def _known(db: apsw.Connection, arrivals: Sequence[Arrival]) -> dict[int, Received]:
    """Those that came before, by the id they would have had."""
    rows: list[tuple[object, ...]] = [(a.key_hash, a.content_hash, a.id) for a in arrivals if a.key_hash is not None]
    kept = 0
    for run in chunks(rows):
        db.execute(many(SQL["keep_keys"], _KEY_ROW, len(run)), flat(run))
        kept += db.changes()
    if kept == len(rows):
        return {}
    known: dict[int, Received] = {}
    batch = {arrival.id: arrival for arrival in arrivals}
    for arrival in arrivals:
        if arrival.key_hash is None:
            continue
        content, first_id = only(db, SQL["known_key"], (arrival.key_hash,))
        if first_id != arrival.id:
            intake = Intake.DUPLICATE if content == arrival.content_hash else Intake.CONFLICT
            first = batch.get(first_id)
            lane, number = (first.inbound.lane, 0) if first else _place(db, first_id, arrival)
            known[arrival.id] = Received(intake, first_id, lane, number)
    return known


def _place(db: apsw.Connection, message_id: int, arrival: Arrival) -> tuple[Lane, int]:
    row = one(db, SQL["place"], (message_id,))
    return (Lane(*row[:4]), row[4]) if row else (arrival.inbound.lane, 0)


def _by_lane(db: apsw.Connection, commits: Sequence[Receive]) -> dict[Lane, _Gain]:
    gains: dict[Lane, _Gain] = {}
    just_named: dict[tuple[str, str, str, str], str] = {}
    for commit in commits:
        inbound = commit.arrival.inbound
        lane, marks = inbound.lane, inbound.marks
        if marks.reply_to is not None:
            target = (lane.channel, lane.account, lane.conversation, marks.reply_to)
            key = just_named.get(target) or _target_key(db, lane, marks.reply_to)
            lane = Lane(*target[:3], key or lane.key)
        if marks.provider_id is not None:
            just_named.setdefault((lane.channel, lane.account, lane.conversation, marks.provider_id), lane.key)
        gains.setdefault(lane, _Gain(commit.window)).arrivals.append(commit.arrival)
    return gains


def _target_key(db: apsw.Connection, lane: Lane, provider_id: str) -> str | None:
    bound = (provider_id, lane.channel, lane.account, lane.conversation)
    row = one(db, SQL["target_lane"], bound)
    return str(row[0]) if row else None


def _extend_lanes(db: apsw.Connection, gains: dict[Lane, _Gain]) -> dict[Lane, tuple[int, int]]:
    """Move the head of each lane; returns its row id and new head."""
    places: dict[Lane, tuple[int, int]] = {}
    for window in {gain.window for gain in gains.values()}:
        rows = [_lane_row(lane, gain.arrivals, window) for lane, gain in gains.items() if gain.window == window]
        bounds = [window.count_max, window.chars_max, window.window_ms, window.quiet_ms, window.wait_ms]
        for run in chunks(rows):
            for row in every(db, many(SQL["extend_lanes"], _LANE_ROW, len(run)), flat(run) + bounds):
                places[Lane(*row[:4])] = (row[4], row[5])
    return places


def _lane_row(lane: Lane, arrivals: Sequence[Arrival], window: Window) -> tuple[object, ...]:
    times = [arrival.at for arrival in arrivals]
    oldest, newest = min(times), max(times)
    chars = sum(len(arrival.inbound.content.text) for arrival in arrivals)
    full = len(arrivals) >= window.count_max or chars >= window.chars_max
    due = newest if full else window.due_at(oldest, newest)
    priority = min(arrival.inbound.priority for arrival in arrivals)
    identity = (lane.channel, lane.account, lane.conversation, lane.key)
    return (*identity, len(arrivals), priority, oldest, newest, chars, due)


def _message_row(arrival: Arrival, lane_id: int, number: int) -> tuple[object, ...]:
    inbound = arrival.inbound
    origin, content, marks = inbound.origin, inbound.content, inbound.marks
    return (
        arrival.id,
        lane_id,
        number,
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
        arrival.content_hash,
    )
