"""Lane heads: where each lane stands, moved on by sets of new messages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.query import SqlSession, chunks, flat, load, many, only, row_of, run, write_rows
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Receive
from keepsaid.domain.lane import Lane
from keepsaid.errors import StoreError

INTAKE = load("intake")
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
            for part in chunks([lane for lane in lanes if lane in self._stand]):
                places |= self._move(db, {lane: gains[lane] for lane in part}, window)
            for part in chunks([lane for lane in lanes if lane not in self._stand]):
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
        if run(db, many(INTAKE["extend_known_lanes"], row_of(8), len(rows)), _bounds(window) + flat(rows)) != len(rows):
            raise StoreError("a lane was moved by somebody else")
        if begun:
            write_rows(db, INTAKE["begin_waiting"], begun)
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
        db.execute(many(INTAKE["extend_lanes"], row_of(11), len(rows)), flat(rows) + _bounds(window))
        found = only(db, many(INTAKE["places"], row_of(4), len(rows)), flat(list(gains)))[0]
        places: dict[Lane, Place] = {Lane(*row[:4]): (row[4], row[5], row[6]) for row in json.loads(found)}
        for lane, (lane_id, head, _) in places.items():
            self._stand[lane] = (lane_id, head, gains[lane][-1].arrival.id)
        return places


def _bounds(window: Window) -> list[object]:
    return [window.count_max, window.chars_max, window.window_ms, window.quiet_ms, window.wait_ms]


def _counted(gain: Sequence[Receive]) -> tuple[int, int, int, int, int, int]:
    """Of the new messages of a lane: count, best priority, oldest and newest arrival, last id, characters."""
    last = gain[-1].arrival
    oldest = newest = last.at
    priority, chars = last.inbound.priority, len(last.inbound.content.text)
    for arrival in (commit.arrival for commit in gain[:-1]):
        oldest, newest = min(oldest, arrival.at), max(newest, arrival.at)
        priority = min(priority, arrival.inbound.priority)
        chars += len(arrival.inbound.content.text)
    return len(gain), priority, oldest, newest, last.id, chars
