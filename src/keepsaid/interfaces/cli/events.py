"""`keepsaid ext events`: the journal, its subscribers and failed deliveries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote

import typer

from keepsaid.domain.event import Event, wants
from keepsaid.domain.ids import when
from keepsaid.events.catalog import CORE, topics_of
from keepsaid.interfaces.cli import console, remote
from keepsaid.interfaces.shapes import cloud_event, delivery_shape, subscriber_shape

app = typer.Typer(help="Read the event journal and manage subscriptions.", rich_markup_mode=None)
_FOLLOW_S = 0.5
_LINES_MAX = 1_000
_STATES = ("pending", "processing", "dead", "done", "dismissed")
_FIND = "keepsaid ext events dead"
Named = Annotated[str, typer.Argument(metavar="DELIVERY", help="Delivery id, as `ext events dead` shows it: dlv_...")]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="Only these topics, such as turn.committed or memory.*; repeatable."),
]


@app.command("tail")
def tail(
    topic: Topics = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, max=_LINES_MAX, help="How many.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until stopped.")] = False,
) -> None:
    """Show the newest events of the journal, newest last."""
    patterns = topics_of(tuple(topic or ("*.*",)))
    found = console.session().read(lambda stores: stores.views.journal.latest(_LINES_MAX)) or ()
    shown = [one for one in found if topic is None or wants(patterns, one.topic)][-limit:] if limit else []
    console.show({"events": [cloud_event(one) for one in shown]}, *(_line(one) for one in shown))
    if not shown and not follow:
        console.say("nothing of that happened" if console.session().stored() else console.NOTHING)
    if follow:
        _follow(max((one.id for one in found), default=0), patterns if topic else ())


def _follow(after: int, patterns: tuple[str, ...]) -> None:
    async def newer(stores: console.Stores) -> Sequence[Event]:
        return await stores.views.journal.events(after, _LINES_MAX)

    while True:
        time.sleep(_FOLLOW_S)
        for one in console.session().read(newer) or ():
            after = max(one.id, after)
            if not patterns or wants(patterns, one.topic):
                console.show({"event": cloud_event(one)}, _line(one))


def _shown(key: str, value: object) -> str:
    """A field as people read it: a time in milliseconds as a date and a time."""
    is_time = key == "due" or key.endswith("_at")
    return str(when(value)) if is_time and isinstance(value, int) else console.one_line(console.json_text(value))


def _line(event: Event) -> str:
    shape = cloud_event(event)
    data = "  ".join(f"{key}={_shown(key, value)}" for key, value in shape["data"].items())
    return f"{shape['time']}  {event.id:>8}  {event.topic:<24}  {data}"


@app.command("topics")
def topics() -> None:
    """List event topics with their fields; `--json` prints their schemas."""
    rows = tuple((topic, one.when, ", ".join(one.fields)) for topic, one in CORE.items())
    shown = {topic: {**one.json_schema(), "about": one.about, "alias": one.alias} for topic, one in CORE.items()}
    console.show({"topics": shown}, console.Table(("TOPIC", "WHEN", "FIELDS"), rows))


@app.command("ls")
def ls() -> None:
    """List subscribers, their topics, and how far each is behind."""
    lines = console.session().read(lambda stores: stores.views.journal.subscribers()) or ()
    shapes, counts = [subscriber_shape(one) for one in lines], ("behind", "pending", "processing", "dead")
    rows = ((one["name"], *(str(one[count]) for count in counts), " ".join(one["topics"])) for one in shapes)
    headings = ("SUBSCRIBER", "BEHIND", "PENDING", "AT WORK", "DEAD", "TOPICS")
    console.show_rows({"subscribers": shapes}, headings, rows, "nobody has subscribed")


@app.command("dead")
def dead(
    subscriber: Annotated[str, typer.Option(help="Only of this subscriber.")] = "",
    state: Annotated[str, typer.Option(help=f"Filter by state: {', '.join(_STATES)}.")] = "dead",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_LINES_MAX, help="How many.")] = 20,
) -> None:
    """List events that could not be delivered, newest first."""
    console.check_choice("--state", state, _STATES)
    lines = console.session().read(lambda stores: stores.views.journal.deliveries((state,), subscriber, limit)) or ()
    shapes, keys = [delivery_shape(one) for one in lines], ("id", "subscriber", "topic", "event", "attempts", "error")
    rows = (tuple(str(shape[key] or "-") for key in keys) for shape in shapes)
    headings = ("DELIVERY", "SUBSCRIBER", "TOPIC", "EVENT", "TRIES", "ERROR")
    console.show_rows({"deliveries": shapes}, headings, rows, f"no delivery is {state}")


@app.command("requeue")
def requeue(thing: Named) -> None:
    """Retry a failed delivery; its attempts start from zero."""
    _decide(thing, "requeue", "is tried again")


@app.command("dismiss")
def dismiss(thing: Named) -> None:
    """Dismiss a failed delivery."""
    _decide(thing, "dismiss", "is let be")


def _decide(thing: str, how: str, done: str) -> None:
    shown = console.name_of("delivery", thing, _FIND)
    if not remote.post(f"/v1/deliveries/{shown}/{how}")[0]["decided"]:
        raise console.refused(f"{thing} was not given up", _FIND)
    console.show({"delivery": shown, how: True}, f"{shown}  {done}")


@app.command("unsubscribe")
def unsubscribe(
    subscriber: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the subscriber, as `ext events ls` shows it.")
    ],
) -> None:
    """Remove a subscriber and discard its pending deliveries."""
    if not remote.post(f"/v1/subscribers/{quote(subscriber, safe='')}/unsubscribe")[0]["unsubscribed"]:
        raise console.refused(f"there is no subscriber {subscriber}", "keepsaid ext events ls")
    console.show({"subscriber": subscriber, "unsubscribed": True}, f"{subscriber}  unsubscribed; deliveries dropped")
