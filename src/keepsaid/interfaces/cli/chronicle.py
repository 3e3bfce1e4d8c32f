"""`keepsaid inbox why`: everything that happened to a message, stage by stage, with what it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer

from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.ids import read, show, when
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.route import COMMAND_RULE
from keepsaid.domain.states import message_state
from keepsaid.domain.views import BatchLife, Chronicle, ReplyLife, StepLife, TurnLife, TurnStory
from keepsaid.interfaces.cli import console
from keepsaid.interfaces.shapes import Shape, batch_shape, fields_of, reply_shape, task_shape, times_of
from keepsaid.text.normal import counted, duration

_STILL = {
    "review": "for a person: a call that must not be repeated has no result",
    "dead": "for a person: it was given up",
}


def waits_for(chronicle: Chronicle) -> str | None:
    """What the batch waits for, in words; None when it is settled."""
    if (life := chronicle.batch) is None:
        return "to be routed" if chronicle.due_at is None else f"for its window to close at {when(chronicle.due_at)}"
    batch = life.batch
    if batch.state == "leased":
        return f"for its turn to end: leased by {life.owner} until {when(life.lease_until)}, fence {batch.fence}"
    if batch.state != "queued":
        return _STILL.get(batch.state)
    if chronicle.paused and batch.verdict.rule != COMMAND_RULE:
        return "until /resume: the conversation is paused"
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
        "redeliveries": [
            {"message": show("message", one.message_id), **fields_of(one, "external_id", "event"), "at": when(one.at)}
            for one in chronicle.redeliveries
        ],
        "window_closes_at": when(chronicle.due_at),
        "batch": None if life is None else _batch(life),
        "task": None if chronicle.task is None else task_shape(chronicle.task),
        "turns": [_turn(one) for one in chronicle.turns],
        "replies": [_reply(one) for one in chronicle.replies],
    }


def _message(message: StoredMessage) -> Shape:
    inbound, lane = message.inbound, message.lane
    return {
        "id": show("message", message.id),
        **fields_of(lane, "channel", "account", "conversation"),
        "lane": lane.key,
        "number": message.number,
        **fields_of(inbound.origin, "sender", "name"),
        "trust": str(inbound.origin.trust),
        "event": inbound.content.event,
        **fields_of(inbound.marks, "external_id", "provider_id", "reply_to"),
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
        **fields_of(batch, "priority", "fence", "crashes"),
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
    about = {"id": show("turn", turn.id), **fields_of(turn, "state", "reason", "model"), **_effort(turn)}
    fields = "n", "kind", "subject", "state", "tries"
    return {**about, "steps": [{**fields_of(step, *fields), **_effort(step)} for step in turn.steps]}


def _reply(life: ReplyLife) -> Shape:
    next_at = when(life.next_at) if life.reply.state in ("pending", "unknown") else None
    ended = {"next_at": next_at, "ended_at": when(life.ended_at), "provider_id": life.provider_id}
    moves = [{"verb": one.verb, "at": when(one.at), "detail": one.detail} for one in life.moves]
    return {**reply_shape(life.reply), "key": life.reply.key, **ended, "moves": moves}


def _effort(life: TurnLife | StepLife) -> Shape:
    """Tokens, cost and time of a turn or a step."""
    usage = life.usage
    cost = None if usage.cost_micros is None else usage.cost_micros / 1_000_000
    took_ms = None if life.ended_at is None else max(0, life.ended_at - life.started_at)
    tokens = {"tokens": [usage.tokens_in, usage.tokens_out], "cost_usd": cost}
    return {**tokens, **times_of(life, "started_at", "ended_at"), "took_ms": took_ms}


_SHOWN_MAX = 10

_TOLD = {
    "take": "sending",
    "confirm": "the provider took it",
    "show": "pulled",
    "retry": "not sent, to be tried again",
    "doubt": "may have arrived",
    "bury": "given up",
    "refuse": "not deliverable",
    "resend": "queued again, may be a duplicate",
    "requeue": "queued again by a person",
}
"""The moves of a reply, for people."""


def why(
    thing: Annotated[
        str,
        typer.Argument(metavar="ID", help="A message, batch or turn: msg_..., bat_... or trn_...; prefix optional."),
    ],
    everything: Annotated[bool, typer.Option("--all", help="List every message of a large batch.")] = False,
) -> None:
    """Show every stage of a message with its times, and what it waits for.

    When it came, when its window closed, which rule decided and why, its batch, every turn with its steps,
    every try to send the reply. `keepsaid why` shows what the model saw.
    """
    what = f"{thing} names no message, batch or turn{unless_pruned()}"
    chronicle = read_chronicle(thing, what, "keepsaid inbox ls")
    lines = chronicle_lines(chronicle, read("message", thing), everything=everything)
    console.show(chronicle_shape(chronicle), *lines)


def read_chronicle(thing: str, what: str, hint: str) -> Chronicle:
    """The chronicle of a message, batch or turn; an id without prefix is tried as each of the three.

    Raises InputError, which says `what`, if there is none.
    """

    async def named(stores: console.Stores) -> Chronicle | None:
        views, found = stores.views, None
        roads = views.chronicle_of_message, views.chronicle_of_batch, views.chronicle_of_turn
        for kind, found_of in zip(("message", "batch", "turn"), roads, strict=True):
            number = read(kind, thing)
            found = found or (None if number is None else await found_of(number))
        if found is None:
            return None
        line = await views.line(found.messages[0].lane if found.batch is None else found.batch.batch.lane)
        return replace(found, paused=line is not None and line.paused)

    return console.session().need(named, what, hint)


def chronicle_lines(chronicle: Chronicle, asked: int | None = None, *, everything: bool = False) -> Iterator[str]:
    """The lines of a chronicle for the terminal.

    Of a large batch they show the message `asked`, or else the first messages; `everything` shows all of them.
    """
    life = chronicle.batch
    state = message_state(life.batch.state if life else None)
    if life is None:
        [message] = chronicle.messages
        yield f"{show('message', message.id)} is {state}: {message.lane.key}   {message.lane.channel}"
    else:
        lane, held = life.batch.lane, counted(life.batch.last - life.batch.first + 1, "message")
        yield f"{show('batch', life.batch.id)} is {life.batch.state}: {held} of lane {lane.key}   {lane.channel}"
    lines = list(_received(chronicle, asked, everything=everything))
    if life is not None:
        lines += gone(life.batch)
        lines += _routed(life, chronicle.messages, asked)
    waits, task = waits_for(chronicle), chronicle.task
    lines += [("waits", waits)] if waits else []
    if task is not None:
        lines.append(("task", f"{show('task', task.id)} is {task.state}: {console.one_line(task.description)}"))
    for turn in chronicle.turns:
        lines += _turn_lines(turn)
    for reply in chronicle.replies:
        lines += _reply_lines(reply)
    yield console.facts(lines)


def _received(chronicle: Chronicle, asked: int | None, *, everything: bool) -> Iterator[tuple[str, str]]:
    messages = chronicle.messages
    shown = messages if everything else [one for one in messages if one.id == asked] or messages[:_SHOWN_MAX]
    for message in shown:
        origin, key = message.inbound.origin, message.inbound.marks.external_id
        stood = f"idempotency key {key}" if key else "no idempotency key"
        named = f"{show('message', message.id)}, number {message.number}, {stood}"
        yield "received", f"{when(message.received_at)}  {named}"
        words = "(damaged: its words cannot be trusted)" if message.damaged else message.text
        said = words or f"({message.inbound.content.event or 'nothing is left of it'})"
        yield "", f"  {origin.name or origin.sender} ({origin.trust}): {console.one_line(said)}"
        for again in (one for one in chronicle.redeliveries if one.message_id == message.id):
            event = f" ({again.event})" if again.event else ""
            yield "", f"  also delivered as {again.external_id or '-'}{event} at {when(again.at)}: treated as duplicate"
    if len(shown) < len(messages):
        yield "", f"  and {counted(len(messages) - len(shown), 'other')} of the same batch: --all lists them"


def _routed(life: BatchLife, messages: tuple[StoredMessage, ...], asked: int | None) -> Iterator[tuple[str, str]]:
    batch, verdict = life.batch, life.batch.verdict
    collected = duration(batch.created_at - life.first_at)
    yield "window", f"{when(batch.created_at)}  closed after {collected}"
    if joined := [message.id for message in messages if message.received_at > batch.created_at]:
        which = show("message", asked) if asked in joined else counted(len(joined), "message")
        yield "", f"  {which} came later and joined the batch while it waited"
    yield "rule", f"{verdict.action} by rule {verdict.rule} of version {verdict.version}: {verdict.reason}"
    counts = [f"numbers {batch.first} to {batch.last}", f"priority {batch.priority}", f"attempts {batch.attempts}"]
    counts += [f"crashes {batch.crashes}", f"deferrals {batch.deferrals}"]
    ended = "" if life.ended_at is None else f", ended {when(life.ended_at)}"
    yield "batch", f"{show('batch', batch.id)} is {batch.state}{ended}: {', '.join(counts)}"
    if batch.error:
        yield "error", batch.error


def _turn_lines(turn: TurnLife) -> Iterator[tuple[str, str]]:
    reason = f": {turn.reason}" if turn.reason else ""
    yield "turn", f"{when(turn.started_at)}  {show('turn', turn.id)} {turn.state}{took(turn, 'after')}{reason}"
    for step in turn.steps:
        tries = f", started {step.tries} times" if step.tries > 1 else ""
        tokens = f", tokens {step.usage.tokens_in:,} in, {step.usage.tokens_out:,} out" if step.kind == "model" else ""
        ended = f"{step.state}{took(step)}{tries}{tokens}"
        yield "step", f"{when(step.started_at)}  {step.n} {step.kind} {step.subject} {ended}"


def took(life: TurnStory | TurnLife | StepLife, word: str = "in") -> str:
    """The end of a sentence that says how long it took, once it has ended."""
    return "" if life.ended_at is None else f" {word} {duration(life.ended_at - life.started_at)}"


def _reply_lines(life: ReplyLife) -> Iterator[tuple[str, str]]:
    reply = life.reply
    doubt = ", may have been sent twice" if reply.possible_duplicate else ""
    again = f", tried at {when(life.next_at)}" if reply.state == "pending" and reply.attempts else ""
    kind = "notice" if reply.draft.notice else "reply"
    yield kind, f"{when(reply.created_at)}  {show('reply', reply.id)} is {reply.state}{doubt}{again}"
    yield "", f"  {console.one_line(reply.draft.text)}"
    for move in life.moves:
        meaning = _TOLD.get(move.verb, move.verb)
        detail = "" if move.detail in ("", meaning) else f" ({move.detail})"
        yield "  try" if move.verb == "take" else "", f"{when(move.at)}  {meaning}{detail}"
    if life.ended_at is not None:
        given = f", the provider's id is {life.provider_id}" if life.provider_id else ""
        tries = f" after {counted(reply.attempts, 'try', 'tries')}" if reply.attempts else ""
        yield "receipt", f"{when(life.ended_at)}  {reply.state}{tries}{given}"


def unless_pruned() -> str:
    """The end of a sentence that says something is not there."""
    buffer = console.session().config().buffer
    return f"; what is done or dropped is pruned after {buffer.retention_days:g} days (buffer.retention_days)"


def gone(batch: StoredBatch) -> list[tuple[str, str]]:
    """A line in place of a batch's messages, where they were pruned."""
    return [("pruned", f"its messages went {when(batch.pruned_at)}")] if batch.pruned_at is not None else []
