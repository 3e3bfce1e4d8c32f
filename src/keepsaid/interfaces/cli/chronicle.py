"""`keepsaid inbox why`: everything that happened to a message, stage by stage, with the times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.ids import read, when
from keepsaid.domain.ids import show as name
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.states import message_state
from keepsaid.domain.views import BatchLife, Chronicle, ReplyLife, TurnLife
from keepsaid.errors import InputError
from keepsaid.interfaces.chronicle import chronicle_shape, waits_for
from keepsaid.interfaces.cli.output import counted, duration, facts, one_line, show
from keepsaid.interfaces.cli.session import session

if TYPE_CHECKING:
    from keepsaid.app.stores import ReadOnlyStores

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
    """Tell every stage of a message with its times, and what it waits for.

    When it came, when its window closed, which rule decided and why, its batch, every turn with its steps,
    every try to send the reply. What the model saw is told by `keepsaid why`.
    """
    chronicle = session().read(lambda stores: chronicle_named(stores, thing), None)
    if chronicle is None:
        raise InputError(
            f"{thing} names no message, batch or turn{unless_pruned()}",
            safe="Nothing was changed.",
            hint="keepsaid inbox ls",
        )
    asked = read("message", thing)
    show(chronicle_shape(chronicle), *told(chronicle, asked, everything=everything))


async def chronicle_named(stores: ReadOnlyStores, thing: str) -> Chronicle | None:
    """The chronicle of a message, batch or turn; an id without prefix is tried as each of the three."""
    views = stores.views
    roads = (
        ("message", views.chronicle_of_message),
        ("batch", views.chronicle_of_batch),
        ("turn", views.chronicle_of_turn),
    )
    for kind, found_of in roads:
        number = read(kind, thing)
        found = None if number is None else await found_of(number)
        if found is not None:
            return found
    return None


def told(chronicle: Chronicle, asked: int | None = None, *, everything: bool = False) -> Iterator[str]:
    """The chronicle for people; of a large batch the message that was asked for, or the first ones."""
    life = chronicle.batch
    state = message_state(life.batch.state if life else None)
    if life is None:
        [message] = chronicle.messages
        yield f"{name('message', message.id)} is {state}: {message.lane.key}   {message.lane.channel}"
    else:
        lane, held = life.batch.lane, counted(life.batch.last - life.batch.first + 1, "message")
        yield f"{name('batch', life.batch.id)} is {life.batch.state}: {held} of lane {lane.key}   {lane.channel}"
    lines = list(_received(chronicle, asked, everything=everything))
    if life is not None:
        lines += gone(life.batch)
        lines += _routed(life, chronicle.messages)
    waits = waits_for(chronicle)
    lines += [("waits", waits)] if waits else []
    if chronicle.task is not None:
        task = chronicle.task
        lines.append(("task", f"{name('task', task.id)} is {task.state}: {one_line(task.description)}"))
    for turn in chronicle.turns:
        lines += _turn(turn)
    for reply in chronicle.replies:
        lines += _reply(reply)
    yield facts(lines)


def _received(chronicle: Chronicle, asked: int | None, *, everything: bool) -> Iterator[tuple[str, str]]:
    messages = chronicle.messages
    shown = messages if everything else [one for one in messages if one.id == asked] or messages[:_SHOWN_MAX]
    for message in shown:
        origin, key = message.inbound.origin, message.inbound.marks.external_id
        stood = f"key {key}: the same again is a duplicate" if key else "no key: the same again is another message"
        yield (
            "received",
            f"{when(message.received_at)}  {name('message', message.id)}, number {message.number}, {stood}",
        )
        words = "(damaged: its words cannot be trusted)" if message.damaged else message.text
        said = words or f"({message.inbound.content.event or 'nothing is left of it'})"
        yield "", f"  {origin.name or origin.sender} ({origin.trust}): {one_line(said)}"
        for again in (one for one in chronicle.redeliveries if one.message_id == message.id):
            event = f" ({again.event})" if again.event else ""
            yield "", f"  also delivered as {again.external_id or '-'}{event} at {when(again.at)}: treated as duplicate"
    if len(shown) < len(messages):
        yield "", f"  and {counted(len(messages) - len(shown), 'other')} of the same batch: --all lists them"


def _routed(life: BatchLife, messages: tuple[StoredMessage, ...]) -> Iterator[tuple[str, str]]:
    batch, verdict = life.batch, life.batch.verdict
    collected = duration(batch.created_at - life.first_at)
    yield "window", f"{when(batch.created_at)}  closed after {collected}"
    joined = sum(message.received_at > batch.created_at for message in messages)
    if joined:
        yield "", f"  {counted(joined, 'message')} came later and joined while it waited"
    yield "rule", f"{verdict.action} by rule {verdict.rule} of version {verdict.version}: {verdict.reason}"
    counts = [f"numbers {batch.first} to {batch.last}", f"priority {batch.priority}", f"attempts {batch.attempts}"]
    counts += [f"crashes {batch.crashes}", f"deferrals {batch.deferrals}"]
    ended = "" if life.ended_at is None else f", ended {when(life.ended_at)}"
    yield "batch", f"{name('batch', batch.id)} is {batch.state}{ended}: {', '.join(counts)}"
    if batch.error:
        yield "error", batch.error


def _turn(turn: TurnLife) -> Iterator[tuple[str, str]]:
    took = "" if turn.ended_at is None else f" after {duration(turn.ended_at - turn.started_at)}"
    why_so = f": {turn.reason}" if turn.reason else ""
    yield "turn", f"{when(turn.started_at)}  {name('turn', turn.id)} {turn.state}{took}{why_so}"
    for step in turn.steps:
        took = "" if step.ended_at is None else f" in {duration(step.ended_at - step.started_at)}"
        tries = f", started {step.tries} times" if step.tries > 1 else ""
        tokens = f", tokens {step.usage.tokens_in:,} in, {step.usage.tokens_out:,} out" if step.kind == "model" else ""
        yield "step", f"{when(step.started_at)}  {step.n} {step.kind} {step.subject} {step.state}{took}{tries}{tokens}"


def _reply(life: ReplyLife) -> Iterator[tuple[str, str]]:
    reply = life.reply
    doubt = ", may have been sent twice" if reply.possible_duplicate else ""
    again = f", tried at {when(life.next_at)}" if reply.state == "pending" and reply.attempts else ""
    kind = "notice" if reply.draft.notice else "reply"
    yield kind, f"{when(reply.created_at)}  {name('reply', reply.id)} is {reply.state}{doubt}{again}"
    yield "", f"  {one_line(reply.draft.text)}"
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
    buffer = session().config().buffer
    return f"; what is done or dropped is pruned after {buffer.retention_days:g} days (buffer.retention_days)"


def gone(batch: StoredBatch) -> list[tuple[str, str]]:
    """A line in place of a batch's messages, where they were pruned."""
    return [("pruned", f"its messages went {when(batch.pruned_at)}")] if batch.pruned_at is not None else []
