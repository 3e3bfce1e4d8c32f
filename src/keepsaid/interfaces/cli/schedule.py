"""`keepsaid schedule`: lists, makes, pauses, runs and cancels schedules."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from keepsaid.domain.schedule import LIVE
from keepsaid.interfaces.cli.console import Table, command_of, facts, one_line, session, show
from keepsaid.interfaces.cli.console import say as talk
from keepsaid.interfaces.cli.remote import elsewhere, post
from keepsaid.text.normal import counted, span_in
from keepsaid.values import frozen

app = typer.Typer(help="Schedule messages, prompts and jobs.", rich_markup_mode=None)
_ENDED = ("done", "cancelled")
_LISTED_MAX = 100_000
_SHOWN_MAX = 1_000
"""Schedules that an instance elsewhere is asked for."""

Named = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Its id (sch_...) or its name.")]


@app.command("ls")
def ls(every: Annotated[bool, typer.Option("--all", help="Include ended schedules.")] = False) -> None:
    """List schedules."""
    from keepsaid.interfaces.task_shapes import schedules_shape  # noqa: PLC0415 - the settings are read late

    if (other := elsewhere()) is not None:
        shape = other.get("/v1/schedules", limit=str(_SHOWN_MAX), **({"all": "1"} if every else {}))
    else:
        states = (*LIVE, *_ENDED) if every else LIVE
        found = session().read(lambda stores: stores.views.schedules.schedules(states, 0, _LISTED_MAX))
        shape = schedules_shape(found or ())
    headings = ("SCHEDULE", "NAME", "STATE", "NEXT", "WHEN", "WHAT", "TEXT")
    show(shape, Table(headings, tuple(map(_row, shape["schedules"]))))
    if not shape["schedules"]:
        talk("no schedules")


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    told = one["when"], one["what"], one_line(one["text"])
    return one["id"], one["name"] or "-", one["state"], _next(one), *told


def _next(one: dict[str, Any]) -> str:
    return (one["next_at"] or "-") if one["state"] == "active" else "-"


@app.command("show")
def show_one(thing: Named) -> None:
    """Show one schedule and its last runs."""
    from keepsaid.interfaces.task_shapes import schedule_view_shape  # noqa: PLC0415

    if (other := elsewhere()) is not None:
        shape = other.get(f"/v1/schedules/{quote(thing, safe='')}")
    else:
        what, hint = f"there is no schedule {thing}", "keepsaid schedule add"
        shape = session().need(lambda stores: schedule_view_shape(stores.views.schedules, thing), what, hint)
    runs = tuple((one["due_at"], one["state"], one["output"], one["reason"] or "-") for one in shape["runs"])
    table = [Table(("DUE", "RUN", "OUTPUT", "WHY"), runs)] if runs else []
    show(shape, _render_schedule(shape), *table)
    if not runs:
        talk("no runs yet")


@frozen
class ScheduleOptions:
    """A schedule as the options ask for it."""

    cron: Annotated[str | None, typer.Option(help="Cron expression: minute, hour, day, month, weekday.")] = None
    every: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Or an interval: 90s, 15m, 12h, 1d, or a number of seconds.")
    ] = None
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Or once at this time, such as 2030-05-04T18:00 (UTC).")
    ] = None
    say: Annotated[str | None, typer.Option(metavar="TEXT", help="Post this text.")] = None
    ask: Annotated[str | None, typer.Option(metavar="TEXT", help="Or send this prompt to the agent.")] = None
    run: Annotated[str | None, typer.Option(metavar="NAME", help="Or run this job; extensions add jobs.")] = None
    task: Annotated[str | None, typer.Option(metavar="TEXT", help="Or give a worker this task.")] = None
    name: Annotated[str, typer.Option(help="Name of the schedule.")] = ""
    timezone: Annotated[str | None, typer.Option(help="Time zone of --cron; by default schedules.timezone.")] = None
    channel: Annotated[str, typer.Option(help="Channel that gets the output.")] = "terminal"
    account: Annotated[str, typer.Option(help="Account on that channel.")] = "default"
    conversation: Annotated[str, typer.Option(help="Conversation that gets the output.")] = "terminal"
    topic: Annotated[str | None, typer.Option(help="Topic of the conversation, if it has topics.")] = None
    direct: Annotated[
        bool, typer.Option("--direct", help="It is a direct chat: a prompt is answered with the memory of its person.")
    ] = False
    urgent: Annotated[bool, typer.Option("--urgent", help="Deliver during quiet hours too.")] = False

    def body(self) -> dict[str, Any]:
        """It as JSON."""
        places = {"channel": self.channel, "account": self.account, "conversation": self.conversation}
        when = {"cron": self.cron, "every_s": _seconds(self.every), "at": self.at, "timezone": self.timezone}
        what = {"say": self.say, "ask": self.ask, "run": self.run, "task": self.task}
        to = {**places, "topic": self.topic, "direct": self.direct}
        return {"name": self.name, **when, **what, "to": to, "urgent": self.urgent}


_OFTEN_S, _DAY_S = 60, 86_400
"""Seconds: of a schedule that runs more often, `add` says how often it runs in a day."""


_LONGEST_S = 366 * _DAY_S


def _seconds(interval: str | None) -> float | None:
    if interval is None:
        return None
    try:
        seconds = span_ms / 1_000 if (span_ms := span_in(interval)) is not None else float(interval)
    except ValueError:
        raise typer.BadParameter(f"--every {interval!r} is not an interval: use 90s, 15m, 12h, 1d or seconds") from None
    if not 1 <= seconds <= _LONGEST_S:
        raise typer.BadParameter(f"--every {interval!r} is out of range: from 1s to 366d")
    return seconds


def _add(wanted: ScheduleOptions) -> None:
    """Add a schedule: when it runs, what it does, and where its output goes."""
    for options in (("cron", "every", "at"), ("say", "ask", "run", "task")):
        if sum(getattr(wanted, one) is not None for one in options) != 1:
            raise typer.BadParameter(f"give exactly one of {', '.join(f'--{one}' for one in options)}")
    if wanted.timezone is not None and wanted.cron is None:
        raise typer.BadParameter("--timezone goes with --cron")
    shape, is_running = post("/v1/schedules", wanted.body())
    show(shape, _render_schedule(shape))
    if (every_s := _seconds(wanted.every)) and every_s < _OFTEN_S:
        asks = "; each run calls the model" if wanted.ask or wanted.task else ""
        talk(f"it runs {counted(round(_DAY_S / every_s), 'time')} a day{asks}")
    if not is_running:
        talk("schedules run while an instance is running: keepsaid serve, or an open keepsaid chat")
        if wanted.run is not None:
            talk(f"whether there is a job {wanted.run!r} is checked when it is due: extensions are not loaded now")


app.command("add")(command_of(ScheduleOptions, _add))


def _add_verb(verb: str, about: str) -> None:
    def command(thing: Named) -> None:
        shape, is_running = post(f"/v1/schedules/{quote(thing, safe='')}/{verb}")
        show(shape, _render_schedule(shape))
        if verb == "run" and not is_running:
            talk("no instance is running: it runs at the next start (keepsaid serve)")
        elif verb == "run":
            talk(f"started; keepsaid schedule show {shape['name'] or shape['id']} lists its runs and their output")

    command.__doc__ = about
    app.command(verb)(command)


_add_verb("run", "Run a schedule now, in addition to its times; without a running instance, at the next start.")
_add_verb("pause", "Pause a schedule; runs that fall due while it is paused are skipped.")
_add_verb("resume", "Resume a schedule that was paused, or disabled after failures.")
_add_verb("cancel", "Cancel a schedule permanently.")


def _render_schedule(shape: dict[str, Any]) -> str:
    to = shape["to"]
    target = "-" if to is None else f"{to['channel']} {to['conversation']} {to['key']}"
    stands = f"{shape['state']}   failures {shape['failures']}   {shape['reason']}".rstrip()
    said = [("schedule", f"{shape['id']}   {shape['name']}".rstrip()), ("state", stands)]
    said += [("next", _next(shape)), ("when", shape["when"])]
    return facts([*said, (shape["what"], one_line(shape["text"])), ("target", target)])
