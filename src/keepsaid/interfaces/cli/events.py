"""`keepsaid events`: what happened, who is told of it, and what could not be told."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from keepsaid.domain.event import Event, wants
from keepsaid.domain.ids import show as name
from keepsaid.events.catalog import CORE, topics_of
from keepsaid.interfaces.cli.console import (
    NOTHING,
    Table,
    check_choice,
    envelope,
    id_of,
    one_line,
    refused,
    say,
    session,
    show,
    show_rows,
)
from keepsaid.interfaces.cli.escapes import visible
from keepsaid.interfaces.cli.remote import post
from keepsaid.interfaces.transfer import cloud_event, delivery_shape, subscriber_shape

if TYPE_CHECKING:
    from keepsaid.app.stores import ReadOnlyStores

app = typer.Typer(help="What happened, and who is told of it.", rich_markup_mode=None)
_FOLLOW_S = 0.5
_LINES_MAX = 1_000
_STATES = ("pending", "processing", "dead", "done", "dismissed")
_FIND = "keepsaid events dead"
Named = Annotated[str, typer.Argument(metavar="DELIVERY", help="As `events dead` shows it: dlv_...")]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only these: turn.committed, memory.*; repeatable.")
]


@app.command("tail")
def tail(
    topic: Topics = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, max=_LINES_MAX, help="How many.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until stopped.")] = False,
) -> None:
    """Show what happened, newest last."""
    patterns = topics_of(tuple(topic or ("*.*",)))
    found = session().read(lambda stores: stores.views.journal.latest(_LINES_MAX)) or ()
    shown = [one for one in found if topic is None or wants(patterns, one.topic)][-limit:] if limit else []
    show({"events": [cloud_event(one) for one in shown]}, *(_line(one) for one in shown))
    if not shown and not follow:
        say("nothing of that happened" if session().stored() else NOTHING)
    if follow:
        _follow(max((one.id for one in found), default=0), patterns if topic else ())


def _follow(after: int, patterns: tuple[str, ...]) -> None:
    while True:
        time.sleep(_FOLLOW_S)
        found = session().read(partial(_newer, after)) or ()
        for one in found:
            if not patterns or wants(patterns, one.topic):
                text = envelope({"event": cloud_event(one)}) if session().json else visible(_line(one))
                typer.echo(text)
        after = max((one.id for one in found), default=after)


async def _newer(after: int, stores: ReadOnlyStores) -> Sequence[Event]:
    return await stores.views.journal.events(after, _LINES_MAX)


def _line(event: Event) -> str:
    shape = cloud_event(event)
    data = "  ".join(f"{key}={one_line(_render_value(value))}" for key, value in shape["data"].items())
    return f"{shape['time']}  {event.id:>8}  {event.topic:<24}  {data}"


def _render_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@app.command("topics")
def topics() -> None:
    """List what the runtime tells of, with the fields of each; `--json` prints their schemas."""
    rows = tuple((topic, one.when, ", ".join(one.fields)) for topic, one in CORE.items())
    shown = {topic: {**one.json_schema(), "about": one.about, "alias": one.alias} for topic, one in CORE.items()}
    show({"topics": shown}, Table(("TOPIC", "WHEN", "FIELDS"), rows))


@app.command("ls")
def ls() -> None:
    """List who is told of what, and how far that is."""
    lines = session().read(lambda stores: stores.views.journal.subscribers()) or ()
    headings = ("SUBSCRIBER", "BEHIND", "PENDING", "AT WORK", "DEAD", "TOPICS")
    rows = tuple(
        (one.name, *map(str, (one.behind, one.pending, one.processing, one.dead)), " ".join(one.topics))
        for one in lines
    )
    show_rows({"subscribers": [subscriber_shape(one) for one in lines]}, headings, rows, "nobody has subscribed")


@app.command("dead")
def dead(
    subscriber: Annotated[str, typer.Option(help="Only of this one.")] = "",
    state: Annotated[str, typer.Option(help=f"Others than dead: {', '.join(_STATES)}.")] = "dead",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_LINES_MAX, help="How many.")] = 20,
) -> None:
    """List what could not be told, newest first."""
    check_choice("--state", state, _STATES)
    lines = session().read(lambda stores: stores.views.journal.deliveries((state,), subscriber, limit)) or ()
    shapes, keys = [delivery_shape(one) for one in lines], ("id", "subscriber", "topic", "event", "attempts", "error")
    rows = (tuple(str(shape[key] or "-") for key in keys) for shape in shapes)
    headings = ("DELIVERY", "SUBSCRIBER", "TOPIC", "EVENT", "TRIES", "ERROR")
    show_rows({"deliveries": shapes}, headings, rows, f"no delivery is {state}")


@app.command("requeue")
def requeue(thing: Named) -> None:
    """Try again what was given up; its attempts count anew."""
    _decide(thing, "requeue")


@app.command("dismiss")
def dismiss(thing: Named) -> None:
    """Let be what was given up."""
    _decide(thing, "dismiss")


def _decide(thing: str, how: str) -> None:
    shown = name("delivery", id_of("delivery", thing, _FIND))
    if not post(f"/v1/deliveries/{shown}/{how}")[0]["decided"]:
        raise refused(f"{thing} was not given up", _FIND)
    show({"delivery": shown, how: True}, f"{shown}  {'is tried again' if how == 'requeue' else 'is let be'}")


@app.command("unsubscribe")
def unsubscribe(
    subscriber: Annotated[str, typer.Argument(metavar="NAME", help="As `events ls` shows it.")],
) -> None:
    """Tell a subscriber of nothing any more, and drop what was on its way to it."""
    if not post(f"/v1/subscribers/{quote(subscriber, safe='')}/unsubscribe")[0]["unsubscribed"]:
        raise refused(f"nobody is called {subscriber}", "keepsaid events ls")
    show({"subscriber": subscriber, "unsubscribed": True}, f"{subscriber}  is told of nothing any more")
