"""Schedules as JSON, and what somebody asks for as a schedule: the same by command and over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from keepsaid.app.work import one_of, refused
from keepsaid.config.services import ScheduleConfig
from keepsaid.domain.ids import read, show, when
from keepsaid.domain.schedule import NewSchedule, Schedule, ScheduleRun
from keepsaid.domain.timing import Cron, Every, Timing
from keepsaid.errors import InputError

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.ports.store_views import ScheduleView

VERBS = ("run", "pause", "resume", "cancel")
"""What a person may do with a schedule."""

_RUNS = 20
_NOTHING = "Nothing was changed."


def timing_told(timing: Timing) -> str:
    """When it comes, in a few words."""
    if isinstance(timing, Cron):
        return f"{timing.text} ({timing.zone})"
    return f"every {timing.ms / 1_000:g} s" if isinstance(timing, Every) else f"once, {when(timing.at)}"


def schedule_shape(one: Schedule) -> dict[str, Any]:
    """A schedule."""
    new, target = one.new, one.new.target
    heard = None
    if target is not None:
        lane = target.lane
        heard = {"channel": lane.channel, "account": lane.account, "conversation": lane.conversation, "key": lane.key}
    stands = {"state": one.state, "next_at": when(one.next_at), "failures": one.failures, "reason": one.reason}
    asked = {
        "source": new.source,
        "name": new.name,
        "when": timing_told(new.timing),
        "what": new.what,
        "text": new.text,
    }
    return {"id": show("schedule", one.id), **asked, "to": heard, "urgent": new.urgent, **stands}


def run_shape(one: ScheduleRun) -> dict[str, Any]:
    """A run."""
    refs = {
        "message": None if one.message_id is None else show("message", one.message_id),
        "reply": None if one.reply_id is None else show("reply", one.reply_id),
        "task": None if one.task_id is None else show("task", one.task_id),
    }
    times = {"due_at": when(one.due_at), "fired_at": when(one.fired_at), "ended_at": when(one.ended_at)}
    return {**times, "state": one.state, "output": one.output, "reason": one.reason, **refs}


def schedules_shape(schedules: Sequence[Schedule]) -> dict[str, Any]:
    """Some schedules."""
    return {"schedules": [schedule_shape(one) for one in schedules]}


def asked_for(body: Mapping[str, object], zone: str) -> NewSchedule:
    """The schedule that a JSON object asks for; its keys are those of the config, and `name`. Raises InputError."""
    given = {key: value for key, value in body.items() if value is not None}
    name = given.pop("name", "")
    unknown = sorted(set(given) - set(ScheduleConfig.model_fields))
    if unknown or not isinstance(name, str):
        raise refused(f"a schedule has no {unknown[0] if unknown else 'name that is no text'}")
    try:
        asked = ScheduleConfig.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = first["msg"].removeprefix("Value error, ")
        raise refused(f"{place}: {what}" if place else what) from None
    return _of_command(asked, name.strip(), zone)


def _of_command(asked: ScheduleConfig, name: str, zone: str) -> NewSchedule:
    made = asked.schedule(0, name, zone)
    return NewSchedule(
        0, "command", made.name, made.timing, made.what, made.text, made.target, made.trust, urgent=made.urgent
    )


async def shown(view: ScheduleView, thing: str) -> dict[str, Any]:
    """One schedule and its last runs; raises InputError where there is none of this id or name."""
    one = await one_of(view, thing, read("schedule", thing))
    return {**schedule_shape(one), "runs": [run_shape(run) for run in await view.runs(one.id, _RUNS)]}


async def done(instance: Instance, thing: str, verb: str) -> dict[str, Any]:
    """Run, pause, resume or cancel one; raises InputError where its state does not allow that."""
    scheduling = instance.scheduling
    one = await scheduling.one(thing, read("schedule", thing))
    if not await (scheduling.run(one) if verb == "run" else scheduling.move(one, verb)):
        why = "it is at work, or comes no more" if verb == "run" else f"it is {one.state}"
        raise InputError(f"{thing} cannot {verb} now: {why}", safe=_NOTHING, hint=f"keepsaid schedule show {thing}")
    return schedule_shape(await scheduling.one(thing, one.id))
