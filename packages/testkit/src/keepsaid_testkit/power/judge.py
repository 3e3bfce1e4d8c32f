"""The judge: opens what a power cut left, and says what of the book is lost and what is half there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import apsw

from keepsaid.adapters.sqlite.connection import open_reader, translated
from keepsaid.adapters.sqlite.integrity import examine
from keepsaid.adapters.sqlite.stores import SqliteOperations, open_operations
from keepsaid.domain.commits import IntakeResult, Receive
from keepsaid.errors import KeepsaidError
from keepsaid.testing.builders import AT_ONCE, arrival
from keepsaid.values import frozen
from keepsaid_testkit.power.book import Book, Sign

_STATEMENT = re.compile(r"^-- (find|look|wrong): (.+)$", re.MULTILINE)
_SENT_AGAIN = 200


@frozen
class Finding:
    """What a cut left: signs that are there, acknowledged ones that are not, and what is not whole."""

    found: frozenset[Sign] = frozenset()
    lost: tuple[Sign, ...] = ()
    corrupt: tuple[str, ...] = ()


async def judge(path: Path, book: Book) -> Finding:
    """Open the store at `path` as the next start would, compare it with the book, and go on with it."""
    try:
        store = await open_operations(path)
    except KeepsaidError as error:
        return Finding(lost=tuple(book.kept), corrupt=(f"it cannot be opened: {error.what}",))
    try:
        found, corrupt = _read(path, book)
        lost = tuple(sign for sign in book.kept if sign not in found)
        corrupt += _halves(book, found)
        corrupt += await _redeliver(store, book, found)
        return Finding(found, lost, tuple(corrupt))
    except KeepsaidError as error:
        return Finding(lost=tuple(book.kept), corrupt=(f"it cannot be read: {error.what}",))
    finally:
        await store.close()


def _read(path: Path, book: Book) -> tuple[frozenset[Sign], list[str]]:
    corrupt = list(examine(path, ("buffer",)).problems)
    with closing(open_reader(path)) as db, translated(path):
        corrupt += [f"{what}: {rows[:3]}" for what, rows in _find_inconsistencies(db)]
        for number, *stored in db.execute(_statements("look")["said"]):
            inbound = book.sent[number]
            if stored != [inbound.content.text, inbound.content.payload, inbound.content_hash, inbound.key_hash]:
                corrupt.append(f"message {number} is not what was sent")
        found = {(kind, *row) for kind, sql in _statements("find").items() for row in db.execute(sql)}
    return frozenset(found), corrupt


def _find_inconsistencies(db: apsw.Connection) -> Iterator[tuple[str, list[object]]]:
    for what, sql in _statements("wrong").items():
        rows = [row[0] for row in db.execute(sql)]
        if rows:
            yield what, rows


def _halves(book: Book, found: frozenset[Sign]) -> list[str]:
    """What was under way is one transaction: all of it is there, or nothing."""
    known = frozenset(book.kept)
    new = [entry for entry in book.doubt if entry.sign not in known]
    there = [entry.sign for entry in new if entry.sign in found]
    missing = [entry.sign for entry in new if entry.certain and entry.sign not in found]
    return [f"of one transaction {there[:2]} is there and {missing[:2]} is not"] if there and missing else []


async def _redeliver(store: SqliteOperations, book: Book, found: frozenset[Sign]) -> list[str]:
    """Redeliver the newest messages; returns what is corrupt.

    A stored message must be a duplicate, a lost one must be stored again. The lanes continue their numbers.
    """
    corrupt: list[str] = []
    for number, inbound in list(book.stored())[-_SENT_AGAIN:]:
        there = ("message", number) in found
        received = await store.apply(Receive(arrival(book.new_id(), inbound), AT_ONCE))
        if there and (received.intake, received.id) != (IntakeResult.DUPLICATE, number):
            corrupt.append(f"message {number} came again and was {received.intake} as {received.id}")
        elif not there and received.intake is not IntakeResult.STORED:
            corrupt.append(f"message {number} is lost and its key is not")
    return corrupt


@cache
def _statements(kind: str) -> Mapping[str, str]:
    text = files("keepsaid_testkit.power").joinpath("judge.sql").read_text("utf-8")
    _, *parts = _STATEMENT.split(text)
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return MappingProxyType({name: sql.strip() for of, name, sql in found if of == kind})
