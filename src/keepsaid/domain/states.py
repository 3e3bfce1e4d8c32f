"""The tables of legal moves: every thing with states, and the verb of every move (design: section 3).

`move(kind, state, verb)` is the only way to a new state; anything it does not list is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

Moves = Mapping[tuple[str, str], str]


def _table(text: str) -> Moves:
    """Read lines of `state -verb-> state`."""
    moves: dict[tuple[str, str], str] = {}
    for line in text.strip().splitlines():
        before, arrow, after = line.split()
        verb = arrow.removeprefix("-").removesuffix("->")
        moves[before, verb] = after
    return MappingProxyType(moves)


BATCH = _table("""
queued -claim-> leased
queued -drop-> dropped
queued -spawn-> done
queued -steer-> done
queued -park-> review
leased -commit-> done
leased -release-> queued
leased -retry-> queued
leased -expire-> queued
leased -interrupt-> queued
leased -park-> review
leased -bury-> dead
dropped -requeue-> queued
review -requeue-> queued
dead -requeue-> queued
review -approve-> done
review -bury-> dead
""")

LIFE = _table("""
running -stop-> stopped
running -die-> died
running -die_in_trial-> died_in_trial
""")

TURN = _table("""
open -commit-> committed
open -abandon-> abandoned
""")

STEP = _table("""
started -finish-> finished
""")

TASK = _table("""
blocked -unblock-> pending
blocked -cascade-> failed
blocked -cancel-> cancelled
pending -start-> running
pending -cancel-> cancelled
running -complete-> completed
running -fail-> failed
running -cancel-> cancelled
running -park-> needs_review
running -retry-> pending
running -release-> pending
running -expire-> pending
needs_review -approve-> pending
needs_review -fail-> failed
needs_review -cancel-> cancelled
""")

REPLY = _table("""
pending -take-> sending
pending -refuse-> not_deliverable
pending -show-> sent
sending -confirm-> sent
sending -retry-> pending
sending -doubt-> unknown
sending -bury-> dead
sending -refuse-> not_deliverable
unknown -resend-> pending
unknown -bury-> dead
dead -requeue-> pending
dead -refuse-> not_deliverable
""")

FEEDBACK = _table("""
wrong -withdraw-> withdrawn
withdrawn -mark-> wrong
""")

DELIVERY = _table("""
pending -take-> processing
processing -finish-> done
processing -retry-> pending
processing -bury-> dead
dead -requeue-> pending
dead -dismiss-> dismissed
""")

SESSION = _table("""
active -sleep-> sleeping
sleeping -wake-> active
active -end-> ended
sleeping -end-> ended
""")

COLLECTION = _table("""
clean -mark-> marked
marked -mark-> marked
claimed -mark-> claimed
parked -mark-> parked
marked -claim-> claimed
claimed -claim-> claimed
marked -wait-> marked
claimed -wait-> marked
claimed -leave-> marked
claimed -finish-> clean
claimed -fail-> marked
claimed -park-> parked
parked -requeue-> marked
""")

SLOT = _table("""
open -fill-> filled
open -clear-> cleared
open -expire-> expired
""")

SCHEDULE = _table("""
active -pause-> paused
paused -resume-> active
disabled -resume-> active
active -disable-> disabled
active -finish-> done
active -cancel-> cancelled
paused -cancel-> cancelled
disabled -cancel-> cancelled
done -cancel-> cancelled
""")

RUN = _table("""
due -begin-> running
due -execute-> executed
due -fail-> failed
due -skip-> skipped
running -execute-> executed
running -fail-> failed
running -interrupt-> interrupted
running -release-> due
""")

OUTPUT = _table("""
none -ask-> asked
none -post-> waiting
asked -answer-> waiting
asked -end-> silent
asked -deliver-> delivered
asked -lose-> undelivered
waiting -deliver-> delivered
waiting -lose-> undelivered
""")

MEMORY = _table("""
active -supersede-> superseded
superseded -reopen-> active
active -archive-> archived
archived -restore-> active
active -merge-> merged
superseded -merge-> merged
archived -merge-> merged
merged -part-> archived
active -forget-> forgotten
superseded -forget-> forgotten
archived -forget-> forgotten
merged -forget-> forgotten
forgotten -undo-> active
""")

FORGETTING = _table("""
requested -hide-> hidden
hidden -erase-> erased
erased -scrub-> scrubbed
scrubbed -checkpoint-> checkpointed
checkpointed -finish-> done
done -undo-> restoring
restoring -restore-> undone
""")

TABLES: Mapping[str, Moves] = MappingProxyType(
    {
        "batch": BATCH,
        "life": LIFE,
        "turn": TURN,
        "step": STEP,
        "task": TASK,
        "reply": REPLY,
        "delivery": DELIVERY,
        "session": SESSION,
        "collection": COLLECTION,
        "slot": SLOT,
        "schedule": SCHEDULE,
        "run": RUN,
        "output": OUTPUT,
        "memory": MEMORY,
        "feedback": FEEDBACK,
        "forgetting": FORGETTING,
    }
)


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
    after = TABLES[kind].get((state, verb))
    if after is None:
        raise IllegalMove(kind, state, verb)
    return after


def message_state(batch_state: str | None) -> str:
    """A message's state, read off its batch: received, batched, done, dropped, review or dead."""
    if batch_state is None:
        return "received"
    return batch_state if batch_state in ("done", "dropped", "review", "dead") else "batched"
