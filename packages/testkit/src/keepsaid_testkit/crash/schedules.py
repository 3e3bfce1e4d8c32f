"""Timely: every life keeps schedules, one that is said where nobody listens yet and one that is run, every second.

What former lives said there is shown, so that its runs come to their end.
"""

from __future__ import annotations

from contextlib import suppress

from keepsaid.app.instance import Instance
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.schedule import NewSchedule, Schedule, ScheduleRun, Target, What
from keepsaid.domain.timing import Every
from keepsaid.engine.scheduler import JobHandler
from keepsaid.errors import InputError

_CHANNEL, _ROOM = "terminal", "timely"
_LANE = Lane(_CHANNEL, "default", _ROOM, lane_key(_ROOM))
_OFTEN = Every(1_000)
_KEPT = (
    NewSchedule(0, "command", "word", _OFTEN, What.SAY, "it is time", Target(_LANE)),
    NewSchedule(0, "command", "tick", _OFTEN, What.RUN, "tick"),
)


async def exercise_schedules(instance: Instance) -> None:
    """Add two schedules, mark what was sent as seen, run one now, and pause and resume the other."""
    schedules = instance.services.schedules
    instance.scheduling.register_job("tick", JobHandler(_tick, again=True))
    for one in _KEPT:
        with suppress(InputError):
            await schedules.add(one)
    for reply in await instance.operations.unseen(_CHANNEL, _ROOM):
        await instance.services.inbox.mark_seen(reply.id)
    word, tick = [await schedules.find(one.name, None) for one in _KEPT]
    await schedules.run(word)
    for verb in ("pause", "resume"):
        await schedules.move(tick, verb)


async def _tick(_schedule: Schedule, _run: ScheduleRun) -> bool:
    return True
