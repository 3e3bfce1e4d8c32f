"""`keepsaid inbox`: lists messages, puts one in, and records an operator's decision on a batch or a reply."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import typer

from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.files import StoredFile
from keepsaid.domain.ids import read, show, when
from keepsaid.domain.redaction import counted_kinds
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.route import Action
from keepsaid.domain.views import MessageFilter, Story, TurnStory
from keepsaid.errors import InputError
from keepsaid.interfaces.cli import chronicle, console, files, remote, routes
from keepsaid.interfaces.shapes import next_try, story_shape, turn_shape
from keepsaid.text.normal import counted, duration

BatchName = Annotated[str, typer.Argument(metavar="ID", help="A message or a batch: msg_... or bat_...")]
Reason = Annotated[str, typer.Option(help="Reason, shown by `inbox why`.")]


def drop(
    thing: BatchName, reason: Annotated[str, typer.Option(help="Reason, shown by `inbox why`; required.")]
) -> None:
    """Drop a waiting batch with all its messages: it is not answered. Nothing is deleted; `requeue` brings it back."""
    batch, state, size = _batch_of(thing, "keepsaid inbox ls --state batched")
    if not remote.post(f"/v1/batches/{batch}/drop", {"reason": reason})[0]["dropped"]:
        now = f"it is {state}" if state != "queued" else "it is being answered"
        raise console.refused(f"{batch} does not wait: {now}", f"keepsaid inbox why {batch}")
    shape = {"batch": batch, "dropped": True, "messages": size}
    console.show(shape, f"{batch}  dropped with its {counted(size, 'message')}")


_REQUEUED = ("dead", "dropped", "review")


def requeue(thing: BatchName, reason: Reason = "requeued by the owner") -> None:
    """Queue a dead, dropped or parked batch again."""
    batch, state, _ = _batch_of(thing, "keepsaid inbox ls")
    told, up = {"requeued": False}, True
    if state in _REQUEUED:
        told, up = remote.post(f"/v1/batches/{batch}/requeue", {"reason": reason})
    if not told["requeued"]:
        what = f"{batch} is not dead, dropped or in review, or its messages are pruned"
        raise console.refused(what, f"keepsaid inbox why {thing}")
    console.show({"batch": batch, "requeued": True}, f"{batch}  queued again")
    if not up:
        console.say("no runtime is up: the next one works on it (keepsaid serve)")


def _batch_of(thing: str, hint: str) -> tuple[str, str, int]:
    """The id and state of the batch that is, or holds, what was named, and how many messages it has."""
    found = chronicle.read_chronicle(thing, f"{thing} names no message and no batch", hint)
    if found.batch is None:
        raise console.refused(f"{thing} is in no batch yet", f"keepsaid inbox why {thing}")
    batch = found.batch.batch
    return show("batch", batch.id), batch.state, batch.last - batch.first + 1


def resend(
    thing: Annotated[
        str, typer.Argument(metavar="ID", help="A dead reply, or a message that has one: rep_... or msg_...")
    ],
    accept: Annotated[bool, typer.Option("--accept", help="Give it up instead; a pending reply too.")] = False,
) -> None:
    """Send a dead reply again; its attempts start from zero. With --accept, give up a dead or pending reply."""
    states = ("dead", "pending") if accept else ("dead",)
    answers = {one: remote.post(f"/v1/replies/{one}/resend", {"accept": accept}) for one in _replies(thing, states)}
    if not (changed := [one for one, (told, _) in answers.items() if told["done"]]):
        raise console.refused(f"{thing} has no {' or '.join(states)} reply", "keepsaid inbox ls --reply dead")
    told = "accepted: not deliverable" if accept else "waits to be sent again"
    console.show({"replies": changed, "accepted": accept}, *(f"{one}  {told}" for one in changed))
    if not accept and not all(up for _, up in answers.values()):
        console.say("no runtime is up: the next one sends it (keepsaid serve)")


def _replies(thing: str, states: Sequence[str]) -> Sequence[str]:
    message_id, reply_id = read("message", thing), read("reply", thing)
    found = None if message_id is None else console.session().read(lambda stores: stores.views.story(message_id))
    if found is not None:
        return [show("reply", reply.id) for reply in found.replies if reply.state in states]
    return [] if reply_id is None else [show("reply", reply_id)]


app = typer.Typer(help="Inspect and manage messages.", rich_markup_mode=None)
_STATES = ("received", "batched", "done", "dropped", "review", "dead")
_REPLIES = ("pending", "sending", "unknown", "sent", "dead", "not_deliverable")


@app.command("ls")
def ls(
    channel: Annotated[str | None, typer.Option(help="Only messages of this channel.")] = None,
    state: Annotated[str | None, typer.Option(help=f"Only messages that are {', '.join(_STATES)}.")] = None,
    conversation: Annotated[str | None, typer.Option(help="Only messages of this conversation.")] = None,
    limit: console.Limit = 20,
    reply: Annotated[
        str | None, typer.Option(help=f"Only messages with a reply that is {', '.join(_REPLIES)}.")
    ] = None,
) -> None:
    """List messages, newest first."""
    console.check_choice("--state", state, _STATES)
    console.check_choice("--reply", reply, _REPLIES)
    wanted = MessageFilter(channel, state, conversation, limit, reply)

    async def found(stores: console.Stores) -> tuple[Sequence[Story], int]:
        return await stores.views.find(wanted), (await stores.views.prune_history()).messages

    stories, gone = console.session().read(found) or ((), 0)
    shape = {"messages": [story_shape(story) for story in stories]}
    console.show_rows(shape, _HEADINGS, map(_row, stories), "no message matches", ("ROUTE", "CONVERSATION"))
    console.say_more(len(stories), limit)
    if gone and len(stories) < limit:
        console.say(f"{counted(gone, 'message')} that were done or dropped are pruned (buffer.retention_days)")


_HEADINGS = ("ID", "AGE", "CHANNEL", "CONVERSATION", "FROM", "STATE", "ROUTE", "TEXT")
_TAIL_S = 1.0
_TAIL_MAX = 1_000
"""Messages that are read at once while new ones are waited for."""


@app.command("tail")
def tail(
    channel: Annotated[str | None, typer.Option(help="Only messages of this channel.")] = None,
    limit: console.Limit = 10,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Wait for new messages, until Ctrl-C.")] = False,
) -> None:
    """Show the newest messages, oldest first; with -f also each new one, and each change of state."""
    last: dict[int, str] = {}
    while True:
        wanted = MessageFilter(channel, None, None, _TAIL_MAX if last else limit, None)
        stories = console.session().read(lambda stores: stores.views.find(wanted)) or ()  # noqa: B023 - read at once
        oldest = min(last, default=0)
        news = [
            one
            for one in reversed(stories)
            if one.message.number >= oldest and last.get(one.message.number) != one.state
        ]
        last |= {story.message.number: story.state for story in news}
        if not follow:
            console.show({"messages": [*map(story_shape, news)]}, *("  ".join(_row(story)) for story in news))
            return
        for story in news:
            console.show({"message": story_shape(story)}, "  ".join(_row(story)))
        last = {number: state for number, state in last.items() if number > max(last, default=0) - _TAIL_MAX}
        time.sleep(_TAIL_S)


def _row(story: Story) -> tuple[str, ...]:
    message, origin = story.message, story.message.inbound.origin
    verdict = story.batch.verdict if story.batch else None
    route = f"{verdict.action} ({verdict.rule})" if verdict else "-"
    if verdict and story.state == "dropped" and verdict.action is not Action.DROP:
        route = "by a person"
    place = show("message", message.id), console.age(message.received_at), origin.channel, origin.conversation
    said = message.text or f"({message.inbound.content.event})"
    return (*place, origin.name or origin.sender, story.state, route, said)


@app.command("show")
def show_one(message: Annotated[str, typer.Argument(help="A message: msg_...")]) -> None:
    """Show one message with every stage it went through, and when."""
    number, what = read("message", message), f"there is no message {message}{chronicle.unless_pruned()}"
    found = console.session().need(lambda stores: _story(stores, number), what, "keepsaid inbox ls")
    story, turn, secrets, brought = found
    told = {"secrets": secrets, "files": [files.file_shape(one) for one in brought]}
    shape = {"message": story_shape(story), "turn": turn_shape(turn) if turn else None, **told}
    kept_out = ", ".join(counted(n, kind) for kind, n in secrets.items())
    lines = [("secrets", f"{kept_out}: kept out of memory")] if secrets else []
    origin = story.message.inbound.origin
    heading = f"{show('message', story.message.id)} is {story.state}: {origin.channel}, {origin.name or origin.sender}"
    console.show(shape, heading, console.facts(_stages(story, turn) + files.file_lines(brought) + lines))


_Found = tuple[Story, TurnStory | None, dict[str, int], Sequence[StoredFile]]
"""A message, the turn that answered it, the secrets in it by kind, and its files."""


async def _story(stores: console.Stores, number: int | None) -> _Found | None:
    story = None if number is None else await stores.views.story(number)
    if story is None:
        return None
    turn = await stores.views.turn(story.turn_id) if story.turn_id is not None else None
    brought = await stores.views.files.of_messages((story.message.id,))
    return story, turn, counted_kinds(await stores.views.marks(story.message.id)), brought


def waits(batch: StoredBatch) -> str:
    """What went wrong last, how often an outage sent the batch back, and when it is tried again."""
    again = next_try(batch)
    outages = f"; sent back {counted(batch.deferrals, 'time')}" if batch.deferrals else ""
    return f"{batch.error}{outages}" + (f"; tried again at {when(again)}" if again is not None else "")


def standing(reply: StoredReply) -> str:
    """The state of a reply, and the result of the last attempt."""
    doubt = ", may have been sent twice" if reply.possible_duplicate else ""
    return f"{reply.state}{doubt}" + (f" ({reply.detail})" if reply.detail else "")


def _stages(story: Story, turn: TurnStory | None) -> list[tuple[str, str]]:
    message, inbound = story.message, story.message.inbound
    key = f", key {inbound.marks.external_id}" if inbound.marks.external_id else ""
    place = f"number {message.number} of lane {message.lane.key}, conversation {message.lane.conversation}"
    stages = [
        ("text", message.text or f"({inbound.content.event})"),
        ("trust", str(inbound.origin.trust)),
        ("received", f"{when(message.received_at)}  {place}{key}"),
    ]
    if story.batch is None:
        return [*stages, ("routed", "not yet")]
    batch, waited = story.batch, story.batch.created_at - message.received_at
    after = f"after {duration(waited)}" if waited >= 0 else "before this message, which joined the batch"
    verdict = f"{batch.verdict.action} by rule {batch.verdict.rule} ({batch.verdict.reason})"
    tried = f", attempts {batch.attempts}" if batch.attempts else ""
    stages += [
        ("routed", f"{when(batch.created_at)}  {verdict}, {after}"),
        ("batch", f"{show('batch', batch.id)} is {batch.state}: numbers {batch.first} to {batch.last}{tried}"),
    ]
    if batch.error and batch.state != "done":
        stages.append(("error", waits(batch)))
    if story.task is not None:
        stages.append(("task", f"{show('task', story.task.id)} is {story.task.state}: {story.task.description}"))
    if turn is not None:
        ended = f"{turn.state}{chronicle.took(turn)}" + (f": {turn.reason}" if turn.reason else "")
        stages.append(("turn", f"{when(turn.started_at)}  {show('turn', turn.turn_id)} {ended}"))
    for reply in story.replies:
        told = f"{show('reply', reply.id)} is {standing(reply)}: {console.one_line(reply.draft.text)}"
        stages.append(("notice" if reply.draft.notice else "reply", f"{when(reply.created_at)}  {told}"))
        stages += files.sent_lines(reply)
    return stages


app.command("why")(chronicle.why)
app.command("file")(files.save_file)
app.command("drop")(drop)
app.command("requeue")(requeue)
app.command("resend")(resend)
app.command("replay")(routes.replay)
app.add_typer(routes.app, name="routes")


@app.command("send")
def send(
    text: Annotated[str, typer.Argument(help="The message; - reads stdin.")],
    channel: Annotated[str, typer.Option(help="Channel it arrives on.")] = "library",
    sender: Annotated[str, typer.Option(help="Who says it; the owner only if the setting owner names them.")] = "owner",
    conversation: Annotated[str, typer.Option(help="Conversation it belongs to.")] = "inbox",
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key twice is one message.")] = None,
) -> None:
    """Store a message; it is on disk when this returns."""
    if key is not None and not (key.isascii() and key.isprintable() and key == key.strip()):
        raise InputError("a key needs printable ASCII letters, without spaces around them")
    said = console.from_stdin() if text == "-" else text
    fields = {"text": said, "channel": channel, "sender": sender, "conversation": conversation}
    receipt, up = remote.post("/v1/messages", fields, key)
    console.show(receipt, f"{receipt['id']}  {receipt['intake']}")
    if not up:
        console.say("no runtime is up: the message waits for the next one (keepsaid serve)")
