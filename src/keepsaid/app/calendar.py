"""The calendar of extensions: what their manifests want done at a time joins the store of all schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from keepsaid.app.extending import Extending
from keepsaid.app.scheduling import Scheduling
from keepsaid.domain.schedule import NewSchedule, Run, Schedule, What
from keepsaid.engine.errands import Errand
from keepsaid.extensions.discovery import Source
from keepsaid.extensions.loaded import State

Work = Callable[[], Awaitable[str | None]]


async def join_calendars(extending: Extending, scheduling: Scheduling, zone: str) -> None:
    """Let the schedules of extensions come; those of one that is off come no more. Before the scheduler starts."""
    wanted: dict[str, list[NewSchedule]] = {
        id_: []
        for id_, guest in extending.lifecycle.guests.items()
        if guest.state in (State.ACTIVE, State.OFF) and guest.found.source is not Source.BUILT_IN
    }
    for id_, entry, work in extending.schedules():
        name = f"ext:{id_}:{entry.name}"
        scheduling.learn(name, Errand(_errand(extending, id_, work)))
        timing = entry.timing(zone)
        wanted[id_].append(NewSchedule(extending.host.ids.next(), f"ext:{id_}", entry.name, timing, What.RUN, name))
    for id_, schedules in wanted.items():
        await scheduling.replace(f"ext:{id_}", schedules)


def _errand(extending: Extending, id_: str, work: Work) -> Callable[[Schedule, Run], Awaitable[bool]]:
    async def do(schedule: Schedule, run: Run) -> bool:
        said = await work()
        if said:
            await extending.host.notify(id_, said, f"{schedule.new.name}:{run.due_at}")
        return True

    return do
