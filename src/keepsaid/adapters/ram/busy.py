"""Busy lanes: batches that join a running turn, or the batch of a turn that is abandoned for them."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.ram.state import BatchRow, LaneRow, State, TurnRow
from keepsaid.domain.busy import INTERRUPTED, JOINED_DOUBT, Interrupt, Steer, may_join
from keepsaid.domain.fact import Over, abandoned, ended
from keepsaid.domain.route import Action
from keepsaid.domain.states import move
from keepsaid.domain.turn import Steered


def interrupt(state: State, commit: Interrupt) -> int | None:
    """Begin the batch at work anew, with the next one in it."""
    lane = state.lanes[commit.lane]
    held = next((batch for batch in lane.open if batch.state == "leased"), None)
    newer = None if held is None else _next(lane, held.last)
    if held is None or newer is None or newer.turns or newer.replies or not _mergeable(held, newer):
        return None
    if newer.last - held.first + 1 > commit.window.count_max or held.chars + newer.chars > commit.window.chars_max:
        return None
    held.go("interrupt")
    abandon(state, held, (INTERRUPTED, Over.INTERRUPTED), commit.at)
    newer.lane.open.remove(newer)
    newer.lane.batches.remove(newer)
    del state.batches[newer.id]
    held.last, held.chars = newer.last, held.chars + newer.chars
    held.priority = min(held.priority, newer.priority)
    return held.id


def _mergeable(held: BatchRow, newer: BatchRow) -> bool:
    """Whether the two are neighbours by one rule, and the turn at work can begin again with nothing done twice."""
    if held.alone or held.attempts or held.crashes or held.deferrals:
        return False
    rules = {(batch.verdict.rule, batch.verdict.version) for batch in (held, newer)}
    if newer.first != held.last + 1 or len(rules) > 1:
        return False
    turn = held.open_turn
    return turn is None or all(step.repeatable for step in turn.recorded)


def _next(lane: LaneRow, after: int) -> BatchRow | None:
    """The next open batch of a lane, if nobody has begun with it."""
    behind = sorted((batch for batch in lane.open if batch.first > after), key=lambda batch: batch.first)
    batch = next(iter(behind), None)
    if batch is None or batch.state != "queued" or batch.verdict.action is not Action.FORWARD:
        return None
    touched = batch.attempts or batch.crashes or batch.deferrals or batch.steered is not None or batch.open_turn
    return None if touched else batch


def abandon(state: State, batch: BatchRow, over: tuple[str, Over], at: int) -> Sequence[BatchRow]:
    """End the open turn of a batch, for a reason; what was steered into it waits for a turn of its own.

    But what the turn was shown before it began something that must not be repeated is parked: a turn of its own
    might ask for the same again. Returns what is parked.
    """
    turn = batch.open_turn
    if turn is None:
        return ()
    parked = []
    doubtful = max((step.n for step in turn.recorded if not step.repeatable), default=-1)
    for one in steered_into(turn):
        if one.steered_at < doubtful:
            one.go("park")
            one.error, one.later, one.ended_at = JOINED_DOUBT, False, at
            state.told(at, ended(one.id, one.state))
            parked.append(one)
        else:
            one.steered = None
    turn.state = move("turn", turn.state, "abandon")
    (turn.reason, why), turn.ended_at = over, at
    state.told(at, abandoned(turn.id, batch.id, why))
    return parked


def steer(state: State, commit: Steer) -> tuple[Steered, ...]:
    """Offer a running turn what waits next."""
    turn = state.held_turn(commit.turn_id, commit.fence)
    if turn is None or turn.batch.id != commit.batch_id or turn.batch.crashes:
        return ()
    joined = [turn.batch, *steered_into(turn)]
    count = sum(batch.last - batch.first + 1 for batch in joined)
    chars = sum(batch.chars for batch in joined)
    last, taken = joined[-1].last, []
    while (batch := _next(turn.batch.lane, last)) is not None:
        count, chars, last = count + batch.last - batch.first + 1, chars + batch.chars, batch.last
        if count > commit.window.count_max or chars > commit.window.chars_max:
            break
        if not may_join(turn.batch.messages, batch.messages):
            break
        batch.steered, batch.steered_at = turn.id, commit.n
        taken.append(Steered(batch.id, commit.n, batch.messages))
    return tuple(taken)


def steered_into(turn: TurnRow) -> list[BatchRow]:
    """The batches whose messages a turn was shown beside its own, in order."""
    return [batch for batch in turn.batch.lane.batches if batch.steered == turn.id]


def leave_unseen(turn: TurnRow) -> None:
    """What no recorded step of an open turn was shown is left to itself again."""
    seen = max((step.n for step in turn.recorded if step.state == "finished"), default=-1)
    for batch in steered_into(turn):
        if batch.steered_at > seen:
            batch.steered = None


def steered(turn: TurnRow) -> tuple[Steered, ...]:
    """What the steps of an open turn were shown beside its own messages."""
    return tuple(Steered(one.id, one.steered_at, one.messages) for one in steered_into(turn))
