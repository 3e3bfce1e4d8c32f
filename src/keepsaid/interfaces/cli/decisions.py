"""A person's word: a batch is dropped, queued again; a dead reply is sent again or given up."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from keepsaid.domain.ids import read
from keepsaid.domain.ids import show as name
from keepsaid.errors import InputError
from keepsaid.interfaces.cli.chronicle import chronicle_named
from keepsaid.interfaces.cli.output import show
from keepsaid.interfaces.cli.remote import either
from keepsaid.interfaces.cli.session import say, session

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.app.stores import Reading
    from keepsaid.domain.views import Chronicle, Story

Batch = Annotated[str, typer.Argument(metavar="ID", help="A message or a batch: msg_... or bat_...")]
Reason = Annotated[str, typer.Option(help="Why, for `inbox why`.")]


def drop(thing: Batch, reason: Annotated[str, typer.Option(help="Why, for `inbox why`; needed.")]) -> None:
    """Drop a batch that waits: nobody answers it. Nothing is deleted; `undrop` brings it back."""
    number, state = _batch_of(thing, "keepsaid inbox ls --state batched")
    done, _ = _said(number, "drop", reason, lambda instance: instance.drop(number, reason))
    if not done:
        now = f"it is {state}" if state != "queued" else "it is being answered"
        raise InputError(
            f"{name('batch', number)} does not wait: {now}",
            safe="Nothing was changed.",
            hint=f"keepsaid inbox why {name('batch', number)}",
        )
    show({"batch": name("batch", number), "dropped": True}, f"{name('batch', number)}  dropped")


def undrop(thing: Batch, reason: Reason = "undropped by the owner") -> None:
    """Queue a dropped batch again."""
    _queue_again(thing, reason, ("dropped",))


def requeue(thing: Batch, reason: Reason = "requeued by the owner") -> None:
    """Queue a dead, dropped or parked batch again."""
    _queue_again(thing, reason, ("dead", "dropped", "review"))


def _queue_again(thing: str, reason: str, states: Sequence[str]) -> None:
    hint = f"keepsaid inbox ls --state {states[0]}"
    number, state = _batch_of(thing, hint)
    done, up = False, True
    if state in states:
        done, up = _said(number, "requeue", reason, lambda instance: instance.requeue(number, reason))
    if not done:
        wanted = {"review": "in review"}
        listed = " or ".join(", ".join(wanted.get(one, one) for one in states).rsplit(", ", 1))
        what = f"{name('batch', number)} is not {listed}, or its messages are pruned"
        raise InputError(what, safe="Nothing was changed.", hint=hint)
    show({"batch": name("batch", number), "requeued": True}, f"{name('batch', number)}  queued again")
    if not up:
        say("no runtime is up: the next one works on it (keepsaid serve)")


def _said(number: int, verb: str, reason: str, here: Callable[[Instance], Awaitable[bool]]) -> tuple[bool, bool]:
    """Whether it was done, by the running instance or here; and whether one is running."""
    body = json.dumps({"reason": reason}).encode()
    path = f"/v1/batches/{name('batch', number)}/{verb}"
    return either(lambda remote: True in remote.post(path, body).values(), here)


def _batch_of(thing: str, hint: str) -> tuple[int, str]:
    """The number and state of the batch that is, or holds, what was named."""
    found: Chronicle | None = session().read(lambda stores: chronicle_named(stores, thing), None)
    if found is None or found.batch is None:
        what = f"{thing} names no message and no batch" if found is None else f"{thing} is in no batch yet"
        raise InputError(
            what, safe="Nothing was changed.", hint=hint if found is None else f"keepsaid inbox why {thing}"
        )
    return found.batch.batch.id, found.batch.batch.state


def resend(
    thing: Annotated[
        str, typer.Argument(metavar="ID", help="A dead reply, or a message that has one: rep_... or msg_...")
    ],
    accept: Annotated[
        bool, typer.Option("--accept", help="Accept that it will not arrive, and do not send it.")
    ] = False,
) -> None:
    """Send a dead reply again, with its tries counted anew."""
    numbers = _dead_replies(thing)
    body = json.dumps({"accept": accept}).encode()
    done, up = either(
        lambda remote: [remote.post(f"/v1/replies/{name('reply', one)}/resend", body)["done"] for one in numbers],
        lambda instance: _decided(instance, numbers, again=not accept),
    )
    changed = [name("reply", one) for one, yes in zip(numbers, done, strict=True) if yes]
    if not changed:
        raise InputError(
            f"{thing} has no dead reply", safe="Nothing was changed.", hint="keepsaid inbox ls --reply dead"
        )
    told = "accepted: not deliverable" if accept else "waits to be sent again"
    show({"replies": changed, "accepted": accept}, *(f"{one}  {told}" for one in changed))
    if not up and not accept:
        say("no runtime is up: the next one sends it (keepsaid serve)")


async def _decided(instance: Instance, numbers: Sequence[int], *, again: bool) -> list[bool]:
    return [await instance.decide(number, again=again) for number in numbers]


def _dead_replies(thing: str) -> Sequence[int]:
    message_id, reply_id = read("message", thing), read("reply", thing)
    found = None if message_id is None else session().read(lambda stores: _story(stores, message_id), None)
    if found is not None:
        return [reply.id for reply in found.replies if reply.state == "dead"]
    return [] if reply_id is None else [reply_id]


async def _story(stores: Reading, message_id: int) -> Story | None:
    return await stores.views.story(message_id)
