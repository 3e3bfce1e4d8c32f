"""The tables of legal moves: every thing with states, and the verb of every move (design: section 3).

`move(kind, state, verb)` is the only way to a new state; anything it does not list is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

Moves = Mapping[tuple[str, str], str]

_MOVES = """
batch
    queued: claim -> leased, drop -> dropped, spawn -> done, steer -> done, park -> review
    leased: commit -> done, release -> queued, retry -> queued, expire -> queued
    leased: interrupt -> queued, park -> review, bury -> dead, drop -> dropped
    dropped: requeue -> queued
    review: requeue -> queued, approve -> done, bury -> dead
    dead: requeue -> queued
life
    running: stop -> stopped, die -> died, die_in_trial -> died_in_trial
turn
    open: commit -> committed, abandon -> abandoned
step
    started: finish -> finished
task
    blocked: unblock -> pending, cascade -> failed, cancel -> cancelled
    pending: start -> running, cancel -> cancelled
    running: complete -> completed, fail -> failed, cancel -> cancelled, park -> needs_review
    running: retry -> pending, release -> pending, expire -> pending
    needs_review: approve -> pending, fail -> failed, cancel -> cancelled
reply
    pending: take -> sending, refuse -> not_deliverable, show -> sent
    sending: confirm -> sent, retry -> pending, doubt -> unknown, bury -> dead, refuse -> not_deliverable
    unknown: resend -> pending, bury -> dead
    dead: requeue -> pending, refuse -> not_deliverable
part
    pending: take -> sending
    sending: confirm -> sent, retry -> pending, doubt -> pending
file
    waiting: keep -> kept, leave -> left
    left: want -> waiting
pairing
    pending: admit -> known, own -> owner
    known: own -> owner
    owner: admit -> known
delivery
    pending: take -> processing
    processing: finish -> done, retry -> pending, bury -> dead
    dead: requeue -> pending, dismiss -> dismissed
session
    active: sleep -> sleeping, end -> ended
    sleeping: wake -> active, end -> ended
collection
    clean: mark -> marked
    marked: mark -> marked, claim -> claimed, wait -> marked
    claimed: mark -> claimed, claim -> claimed, wait -> marked, leave -> marked
    claimed: finish -> clean, fail -> marked, park -> parked
    parked: mark -> parked, requeue -> marked
slot
    open: fill -> filled, clear -> cleared, expire -> expired
schedule
    active: pause -> paused, disable -> disabled, finish -> done, cancel -> cancelled
    paused: resume -> active, cancel -> cancelled
    disabled: resume -> active, cancel -> cancelled
    done: cancel -> cancelled
run
    due: begin -> running, execute -> executed, fail -> failed, skip -> skipped
    running: execute -> executed, fail -> failed, interrupt -> interrupted, release -> due
output
    none: ask -> asked, post -> waiting
    asked: answer -> waiting, end -> silent, deliver -> delivered, lose -> undelivered
    waiting: deliver -> delivered, lose -> undelivered
memory
    active: supersede -> superseded, archive -> archived, merge -> merged, forget -> forgotten
    superseded: reopen -> active, merge -> merged, forget -> forgotten
    archived: restore -> active, merge -> merged, forget -> forgotten
    merged: part -> archived, forget -> forgotten
    forgotten: undo -> active
feedback
    wrong: withdraw -> withdrawn
    withdrawn: mark -> wrong
forgetting
    requested: hide -> hidden
    hidden: erase -> erased
    erased: scrub -> scrubbed
    scrubbed: checkpoint -> checkpointed
    checkpointed: finish -> done
    done: undo -> restoring
    restoring: restore -> undone
"""
"""A kind of thing on a line of its own; below it each state with its moves, `verb -> state`."""


def _tables(text: str) -> dict[str, Moves]:
    tables: dict[str, dict[tuple[str, str], str]] = {}
    for line in text.strip().splitlines():
        before, colon, moves = line.partition(":")
        if not colon:
            table = tables[line] = {}
            continue
        for one in moves.split(","):
            verb, _, after = one.partition("->")
            table[before.strip(), verb.strip()] = after.strip()
    return {kind: MappingProxyType(table) for kind, table in tables.items()}


TABLES: Mapping[str, Moves] = MappingProxyType(_tables(_MOVES))

STATES = frozenset(
    state for table in TABLES.values() for (before, _), after in table.items() for state in (before, after)
)
"""Every state that anything can be in."""


class IllegalMove(Exception):
    """A thing was asked to make a move its table does not list; nothing was changed."""

    def __init__(self, kind: str, state: str, verb: str) -> None:
        super().__init__(f"a {kind} that is {state} cannot {verb}")
        self.kind = kind
        self.state = state
        self.verb = verb


def move(kind: str, state: str, verb: str) -> str:
    """The state after `verb`; raises IllegalMove when the table of `kind` does not list it."""
    if (after := TABLES[kind].get((state, verb))) is None:
        raise IllegalMove(kind, state, verb)
    return after


def message_state(batch_state: str | None) -> str:
    """A message's state, read off its batch: received, batched, done, dropped, review or dead."""
    if batch_state is None:
        return "received"
    return batch_state if batch_state in ("done", "dropped", "review", "dead") else "batched"
