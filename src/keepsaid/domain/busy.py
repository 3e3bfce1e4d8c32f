"""Busy lanes: the handling of messages that arrive while a turn of their lane runs, by channel."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from keepsaid.domain import batch, command, commits, turn
from keepsaid.domain.message import Lane, StoredMessage
from keepsaid.values import frozen

INTERRUPTED = "interrupted by a newer message"
"""Why a turn was abandoned whose batch took in what came meanwhile."""

JOINED_DOUBT = "it joined a turn that began something that must not be repeated, and did not end"
"""Why a batch is parked that was shown to a turn before such a call."""


class BusyPolicy(StrEnum):
    """`queue`: they are the next batch. `steer`: the running turn is shown them between its steps.

    `interrupt`: the running turn is abandoned, and its batch restarts together with them.
    """

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"


@frozen
class Interrupt(commits.Commit[int | None]):
    """Merge the next queued batch of a lane into the one at work there, whose turn is abandoned.

    Returns the id of the batch that restarts, or None with nothing changed: when none is at work, when the next
    is not its neighbour, of the same rule and untouched, when the sum exceeds the window's bounds, when the batch at
    work was charged, suspected or deferred before, and when its turn has begun something that must not be repeated.
    """

    lane: Lane
    window: batch.Window
    at: int


@frozen
class Steer(commits.Commit[tuple[turn.Steered, ...]]):
    """Offer a running turn the untouched batches that wait next in its lane, before its step `n`.

    What is taken stays queued behind the turn's batch, belongs to the turn until that is committed or abandoned,
    and grows no more. All together keep within the window's bounds. Nothing is taken with an old fence, for a
    suspect, or from a stranger in a direct chat.
    """

    turn_id: int
    batch_id: int
    fence: int
    n: int
    window: batch.Window


def may_join(held: Sequence[StoredMessage], more: Sequence[StoredMessage]) -> bool:
    """Whether messages may be shown to a turn that began with others: it goes on with the tools it was given.

    In a direct chat these hear what its one person may hear; so nobody else's words may join. A damaged message
    is left to a batch of its own, which is parked without the innocent; a command is for the program, not for the turn.
    """
    if any(message.damaged or command.command_in(message) is not None for message in more):
        return False
    people = {message.inbound.origin.sender for message in (*held, *more)}
    return len(people) == 1 or not all(message.inbound.origin.direct for message in held)
