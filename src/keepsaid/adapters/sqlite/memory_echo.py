"""Echoes in the memory store: whether a memory repeats a sentence that was forgotten."""

from __future__ import annotations

import json

import apsw

from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.forgetting import AGENT, echo_digests
from keepsaid.domain.memory import Kind, NewMemory
from keepsaid.text.normal import normalise

SQL = load("memory_forget")
REMADE = frozenset({Kind.THREAD_SUMMARY, Kind.SESSION_SUMMARY, Kind.THREAD_STATE, Kind.BULLETIN})
"""Kinds that are made again under their name, from what stays."""


def any_echoes(db: apsw.Connection) -> bool:
    """Whether any sentence was forgotten in this home."""
    return bool(db.execute(SQL["any_echoes"]).fetchall())


def digests_of(memory: NewMemory) -> list[str]:
    """The digests of the sentences that a memory may repeat, in hexadecimal; none of one that is made anew."""
    if memory.kind in REMADE or memory.asked:
        return []
    return [one.hex() for one in echo_digests(memory.speaker_id or AGENT, normalise(memory.text))]


def repeats(db: apsw.Connection, memory: NewMemory) -> bool:
    """Whether a memory repeats a sentence that its speaker, or for the agent anybody, had forgotten."""
    if not any_echoes(db):
        return False
    return bool(db.execute(SQL["echoed"], (json.dumps(digests_of(memory)),)).fetchall())


def lift(db: apsw.Connection, memory: NewMemory) -> None:
    """Let the sentences of a memory that a person asked for be remembered again."""
    if any_echoes(db):
        named = [*echo_digests(memory.speaker_id, memory.text), *echo_digests(AGENT, memory.text)]
        db.execute(SQL["lift"], (json.dumps([one.hex() for one in named]),))
