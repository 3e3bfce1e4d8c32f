"""Chronicles as JSON, and in words what a batch waits for."""

from __future__ import annotations

from keepsaid.domain.ids import show, when
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import BatchLife, Chronicle, Redelivery, ReplyLife, StepLife, TurnLife
from keepsaid.interfaces.shapes import Shape, batch_shape, reply_shape

_STILL = {
    "review": "for a person: a call that must not be repeated has no result",
    "dead": "for a person: it was given up",
}


def waits_for(chronicle: Chronicle) -> str | None:
    """What the batch waits for, in words; None when it is settled."""
    life = chronicle.batch
    if life is None:
        return (
            f"for its window to close at {when(chronicle.due_at)}" if chronicle.due_at is not None else "to be routed"
        )
    batch = life.batch
    if batch.state == "leased":
        return f"for its turn to end: leased by {life.owner} until {when(life.lease_until)}, fence {batch.fence}"
    if batch.state != "queued":
        return _STILL.get(batch.state)
    if life.ahead is not None:
        return f"for {show('batch', life.ahead.id)} of the same lane, which is {life.ahead.state}"
    if life.later:
        return f"until {when(batch.ready_at)}" + (f": {batch.error}" if batch.error else "")
    if batch.crashes > 1:
        return (
            f"until the program has run {batch.trial_after_ms / 1_000:g} s without it and everything else has ended: "
            f"the program was stopped {batch.crashes} times in a row while it worked on this, so it runs alone"
        )
    if batch.crashes:
        return "for other suspects to end: it was in flight when the process died"
    return "for a place"


def chronicle_shape(chronicle: Chronicle) -> Shape:
    """Everything that is known, with every time."""
    life = chronicle.batch
    return {
        "state": "received" if life is None else life.batch.state,
        "waits_for": waits_for(chronicle),
        "messages": [_message(one) for one in chronicle.messages],
        "redeliveries": [_redelivery(one) for one in chronicle.redeliveries],
        "window_closes_at": when(chronicle.due_at),
        "batch": None if life is None else _batch(life),
        "task": None
        if chronicle.task is None
        else {
            "id": show("task", chronicle.task.id),
            "state": chronicle.task.state,
            "description": chronicle.task.description,
        },
        "turns": [_turn(one) for one in chronicle.turns],
        "replies": [_reply(one) for one in chronicle.replies],
    }


def _redelivery(again: Redelivery) -> Shape:
    return {
        "message": show("message", again.message_id),
        "external_id": again.external_id,
        "event": again.event,
        "at": when(again.at),
    }


def _message(message: StoredMessage) -> Shape:
    inbound, lane = message.inbound, message.lane
    return {
        "id": show("message", message.id),
        "channel": lane.channel,
        "account": lane.account,
        "conversation": lane.conversation,
        "lane": lane.key,
        "number": message.number,
        "sender": inbound.origin.sender,
        "name": inbound.origin.name,
        "trust": str(inbound.origin.trust),
        "event": inbound.content.event,
        "external_id": inbound.marks.external_id,
        "provider_id": inbound.marks.provider_id,
        "reply_to": inbound.marks.reply_to,
        "priority": inbound.priority,
        "text": message.text,
        "payload_bytes": len(inbound.content.payload),
        "damaged": message.damaged,
        "received_at": when(message.received_at),
    }


def _batch(life: BatchLife) -> Shape:
    batch = life.batch
    return {
        **batch_shape(batch),
        "priority": batch.priority,
        "fence": batch.fence,
        "crashes": batch.crashes,
        "alone": life.alone,
        "first_at": when(life.first_at),
        "window_closed_at": when(batch.created_at),
        "window_ms": max(0, batch.created_at - life.first_at),
        "ready_at": when(batch.ready_at),
        "ended_at": when(life.ended_at),
        "owner": life.owner,
        "lease_until": when(life.lease_until),
        "behind": None if life.ahead is None else show("batch", life.ahead.id),
    }


def _turn(turn: TurnLife) -> Shape:
    return {
        "id": show("turn", turn.id),
        "state": turn.state,
        "reason": turn.reason,
        "model": turn.model,
        **_cost(turn.usage),
        "started_at": when(turn.started_at),
        "ended_at": when(turn.ended_at),
        "took_ms": _took(turn.started_at, turn.ended_at),
        "steps": [_step(one) for one in turn.steps],
    }


def _step(step: StepLife) -> Shape:
    return {
        "n": step.n,
        "kind": step.kind,
        "subject": step.subject,
        "state": step.state,
        "tries": step.tries,
        **_cost(step.usage),
        "started_at": when(step.started_at),
        "ended_at": when(step.ended_at),
        "took_ms": _took(step.started_at, step.ended_at),
    }


def _reply(life: ReplyLife) -> Shape:
    moves = [{"verb": one.verb, "at": when(one.at), "detail": one.detail} for one in life.moves]
    return {
        **reply_shape(life.reply),
        "key": life.reply.key,
        "next_at": when(life.next_at) if life.reply.state in ("pending", "unknown") else None,
        "ended_at": when(life.ended_at),
        "provider_id": life.provider_id,
        "moves": moves,
    }


def _cost(usage: Usage) -> Shape:
    cost = None if usage.cost_micros is None else usage.cost_micros / 1_000_000
    return {"tokens": [usage.tokens_in, usage.tokens_out], "cost_usd": cost}


def _took(started_at: int, ended_at: int | None) -> int | None:
    return None if ended_at is None else max(0, ended_at - started_at)
