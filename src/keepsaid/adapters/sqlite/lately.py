"""Lately: what was said last in a conversation, kept at hand for lanes that are inferred."""

from __future__ import annotations

from itertools import groupby

import apsw

from keepsaid.adapters.sqlite.query import Row, every
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.commits import Arrival
from keepsaid.domain.lane import Lane
from keepsaid.domain.strand import (
    LATELY_MAX,
    RECORDS_EACH,
    TEXT_CHARS_MAX,
    Placed,
    Spoken,
    answered,
    kept,
    remembered,
    strand_of,
)
from keepsaid.text.references import Said

SQL = load("intake")
_CONVERSATIONS_MAX = 1_000

_Place = tuple[str, str, str]


class Lately:
    """The last words of conversations, as the stored rows have them: read once, then kept up by the one writer."""

    def __init__(self) -> None:
        self._heard: dict[_Place, list[Spoken]] = {}

    def forget(self) -> None:
        """Know nothing: rows were taken back, or are gone."""
        self._heard.clear()

    def trim(self) -> None:
        """Keep few enough conversations; not while messages are being placed that no row holds yet."""
        if len(self._heard) > _CONVERSATIONS_MAX:
            self.forget()

    def strand(self, db: apsw.Connection, arrival: Arrival) -> Placed:
        """The lane of a new message."""
        place = _place(arrival.inbound.lane)
        heard = self._before(db, place)
        keys = tuple({one.key for one in heard})
        answers = _answers(db, place, keys) if keys else []
        return strand_of((*heard, *answers), arrival.id, arrival.inbound, arrival.at)

    def add(self, db: apsw.Connection, arrival: Arrival, key: str) -> None:
        """A new message has found its lane."""
        spoken = remembered(arrival.id, arrival.inbound, arrival.at, key)
        if spoken is not None:
            place = _place(arrival.inbound.lane)
            self._heard[place] = kept(self._before(db, place), spoken)

    def _before(self, db: apsw.Connection, place: _Place) -> list[Spoken]:
        heard = self._heard.get(place)
        if heard is None:
            rows = every(db, SQL["lately"], (*place, LATELY_MAX, TEXT_CHARS_MAX))
            heard = self._heard[place] = [_spoken(row) for row in reversed(rows)]
        return heard


def _place(lane: Lane) -> _Place:
    return lane.channel, lane.account, lane.conversation


def _spoken(row: Row) -> Spoken:
    message_id, key, sender, name, provider_id, reply_to, text, at = row
    return Spoken(message_id, Said(f"message:{message_id}", sender, text, at, name), key, provider_id, reply_to)


def _answers(db: apsw.Connection, place: _Place, keys: tuple[str, ...]) -> list[Spoken]:
    rows = every(db, SQL["answers"], (*place, apsw.carray(keys), RECORDS_EACH))
    return [one for key, lane in groupby(rows, lambda row: row[0]) for one in answered(key, (row[1:] for row in lane))]
