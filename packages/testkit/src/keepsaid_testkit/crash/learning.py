"""Learning: a life that learns from every memory it stores, and one that begins with many vectors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from keepsaid.adapters.sql.search.memories import MEMORY_TABLE
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.adapters.sqlite.writer import TransactionExecutor
from keepsaid.domain.bundle import BundleEntry
from keepsaid.domain.learning import COMMAND_KEY, Ruled, Ruling, UndoRequest
from keepsaid.domain.memory import Kind, Listener, Memory, NewMemory, Source, person_scope
from keepsaid.domain.message import Lane, Trust
from keepsaid_testkit.crash.evidence_stores import SQL

_HASH_BYTES = 16
_PLACES = ("Porto", "Lisbon", "Porto")


async def exercise_learning(store: SqliteMemories, memory_id: int, at: int) -> None:
    """Learn, correct, confirm and pin a fact; rule on two notes, merge and archive them; store a memory and undo that.

    A third note is imported from another home.
    """
    moved = [_new_memory(memory_id, n, f"it is in {place}", place) for n, place in enumerate(_PLACES)]
    learned = await store.learn(moved, at)
    await store.revisions.pin(learned[-1].memory_id, at, pinned=True)
    await store.revisions.correct(learned[-1].memory_id, _new_memory(memory_id, 3, "no, it is in Rome", "Rome"), at)
    await store.revisions.confirm(learned[-1].memory_id, at)
    notes = [
        _new_memory(memory_id, 4, "a note of the first kind"),
        _new_memory(memory_id, 5, "words of quite another sort"),
        _new_memory(memory_id, 7, "the kettle whistles beside the window"),
    ]
    first, second, same = await store.learn(notes, at)
    await store.pairs.rule([Ruled(first.memory_id, second.memory_id, Ruling.CONTRADICTS)], at)
    if first.memory_id != same.memory_id:
        await store.revisions.merge(first.memory_id, [same.memory_id], at)
    await store.revisions.archive([first.memory_id], at)
    ann = Listener(Lane("terminal", "default", "ann", "root:ann"), f"ann {memory_id}", direct=True)
    noted = _new_memory(memory_id, 7, "what ann asked to keep")
    key = f"{COMMAND_KEY}{memory_id}"
    await store.learn([replace(noted, key=key, lane=ann.lane, speaker_id=ann.person)], at)
    await store.revisions.undo(UndoRequest(ann, key, at))
    third = Memory(memory_id ^ 1, _new_memory(memory_id, 6, "a note from another home"), "active", at)
    await store.bundles.take([BundleEntry(third, bytes(_HASH_BYTES), said_in=("",))], (), at)


def _new_memory(memory_id: int, n: int, text: str, place: str = "") -> NewMemory:
    key, thing = f"taught:{memory_id}:{n}", f"thing {memory_id}"
    return NewMemory(
        key,
        Kind.FACT,
        f"{thing}: {text}",
        person_scope(thing),
        Trust.KNOWN,
        subject=thing,
        attribute="place" if place else "",
        value=place,
        said_at=100 * (n + 1),
        sources=(Source("message", key),),
    )


_BUSY_MS = 10_000


def age(home: Path) -> None:
    """With a few vectors more the next block of them is whole. What a kill left in the log is left to the next life."""
    path = home / "data" / "memory.db"
    db = open_writer(path)
    ledger = TransactionExecutor(db, path, MEMORY_TABLE)
    try:
        db.set_busy_timeout(_BUSY_MS)
        with db:
            db.execute(SQL["first_vectors"])
            db.execute(SQL["many_vectors"])
    finally:
        ledger.close(broken=True)
