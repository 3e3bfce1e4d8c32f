"""`keepsaid schedule`: lists, makes, pauses, runs and cancels schedules."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from keepsaid.domain.schedule import LIVE
from keepsaid.interfaces.cli.console import Table, command_of, facts, one_line, say, session, show
from keepsaid.interfaces.cli.remote import post
from keepsaid.values import frozen

app = typer.Typer(help="What comes at a time: said, asked or run.", rich_markup_mode=None)
_ENDED = ("done", "cancelled")
_LISTED_MAX = 100_000
Named = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Its id (sch_...) or its name.")]


@app.command("ls")
def ls(every: Annotated[bool, typer.Option("--all", help="Those that are over as well.")] = False) -> None:
    """List schedules."""
    from keepsaid.interfaces.task_shapes import schedules_shape  # noqa: PLC0415 - the settings are read late

    states = (*LIVE, *_ENDED) if every else LIVE
    found = session().read(lambda stores: stores.views.schedules.schedules(states, 0, _LISTED_MAX))
    shape = schedules_shape(found or ())
    headings = ("SCHEDULE", "NAME", "STATE", "NEXT", "WHEN", "WHAT", "TEXT")
    show(shape, Table(headings, tuple(map(_row, shape["schedules"]))))
    if not shape["schedules"]:
        say("no schedule")


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    told = one["when"], one["what"], one_line(one["text"])
    return one["id"], one["name"] or "-", one["state"], _next(one), *told


def _next(one: dict[str, Any]) -> str:
    return "-" if one["state"] in _ENDED else one["next_at"] or "-"


@app.command("show")
def show_one(thing: Named) -> None:
    """Show one schedule and its last runs."""
    from keepsaid.interfaces.task_shapes import schedule_view_shape  # noqa: PLC0415

    what, hint = f"there is no schedule {thing}", "keepsaid schedule add"
    shape = session().need(lambda stores: schedule_view_shape(stores.views.schedules, thing), what, hint)
    runs = tuple((one["due_at"], one["state"], one["output"], one["reason"] or "-") for one in shape["runs"])
    show(shape, _render_schedule(shape), Table(("DUE", "RUN", "OUTPUT", "WHY"), runs))


@frozen
class ScheduleOptions:
    """A schedule as the options ask for it."""

    cron: Annotated[str | None, typer.Option(help="When: minute, hour, day, month, weekday.")] = None
    every: Annotated[float | None, typer.Option(metavar="SECONDS", help="Or every so many seconds.")] = None
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Or once, such as 2030-05-04T18:00 (UTC).")] = None
    say: Annotated[str | None, typer.Option(metavar="TEXT", help="What is posted as it is.")] = None
    ask: Annotated[str | None, typer.Option(metavar="TEXT", help="Or what the agent is asked.")] = None
    run: Annotated[str | None, typer.Option(metavar="NAME", help="Or what is run here.")] = None
    task: Annotated[str | None, typer.Option(metavar="TEXT", help="Or what a worker is to do.")] = None
    name: Annotated[str, typer.Option(help="What to call it.")] = ""
    timezone: Annotated[str | None, typer.Option(help="Of --cron; by default schedules.timezone.")] = None
    channel: Annotated[str, typer.Option(help="Where it is heard.")] = "terminal"
    account: Annotated[str, typer.Option(help="The login or bot there.")] = "default"
    conversation: Annotated[str, typer.Option(help="The conversation there.")] = "terminal"
    topic: Annotated[str | None, typer.Option(help="Its topic, if it has some.")] = None
    urgent: Annotated[bool, typer.Option("--urgent", help="In quiet hours too.")] = False

    def body(self) -> dict[str, Any]:
        """It as JSON."""
        places = {"channel": self.channel, "account": self.account, "conversation": self.conversation}
        when = {"cron": self.cron, "every_s": self.every, "at": self.at, "timezone": self.timezone}
        what = {"say": self.say, "ask": self.ask, "run": self.run, "task": self.task}
        return {"name": self.name, **when, **what, "to": {**places, "topic": self.topic}, "urgent": self.urgent}


def _add(wanted: ScheduleOptions) -> None:
    """Add a schedule: when it comes, what is done, and where it is heard, for ever."""
    for options in (("cron", "every", "at"), ("say", "ask", "run", "task")):
        if sum(getattr(wanted, one) is not None for one in options) != 1:
            raise typer.BadParameter(f"one of them has to be given: {', '.join(f'--{one}' for one in options)}")
    shape, _ = post("/v1/schedules", wanted.body())
    show(shape, _render_schedule(shape))


app.command("add")(command_of(ScheduleOptions, _add))


def _add_verb(verb: str, about: str) -> None:
    def command(thing: Named) -> None:
        shape, _ = post(f"/v1/schedules/{quote(thing, safe='')}/{verb}")
        show(shape, _render_schedule(shape))

    command.__doc__ = about
    app.command(verb)(command)


_add_verb("run", "Run one now, beside its times; a runtime does it at once, else the next start.")
_add_verb("pause", "Let one rest until it is resumed; what of it is due is skipped.")
_add_verb("resume", "Let one come again that was paused, or failed too often.")
_add_verb("cancel", "Let one come no more.")


def _render_schedule(shape: dict[str, Any]) -> str:
    to = shape["to"]
    heard = "-" if to is None else f"{to['channel']} {to['conversation']} {to['key']}"
    stands = f"{shape['state']}   failures {shape['failures']}   {shape['reason']}".rstrip()
    said = [("schedule", f"{shape['id']}   {shape['name']}".rstrip()), ("state", stands)]
    said += [("next", _next(shape)), ("when", shape["when"])]
    return facts([*said, (shape["what"], one_line(shape["text"])), ("heard", heard)])
