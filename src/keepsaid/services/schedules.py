"""Schedules, by a person's word, by the config or by an extension: added, replaced, listed, moved and run now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from keepsaid.domain import scheduling, timing
from keepsaid.domain.ids import MAX_ID, show
from keepsaid.domain.schedule import LIVE, OVER, NewSchedule, Schedule, What
from keepsaid.engine.scheduler import JobRunner, Scheduler
from keepsaid.errors import InputError
from keepsaid.ports.runtime import Clock, Hint, Ids
from keepsaid.ports.store import Store
from keepsaid.ports.store_views import ScheduleView

_LISTED_MAX = 100_000
_TEXT_CHARS_MAX, _NAME_CHARS_MAX = 20_000, 200


def refused(what: str, hint: str = "keepsaid schedule add --help") -> InputError:
    """The error for a schedule that was not changed, by default for one that cannot be added."""
    return InputError(what, safe="Nothing was changed.", hint=hint)


async def find_schedule(view: ScheduleView, known_as: str, number: int | None) -> Schedule:
    """A schedule by its id, or by the name of one that is not over; raises InputError."""
    found = None if number is None else await view.schedule(number)
    if found is None:
        living = await view.schedules(LIVE, 0, _LISTED_MAX)
        found = next((one for one in living if known_as and one.new.name == known_as), None)
    if found is None:
        over = await view.schedules(OVER, 0, _LISTED_MAX)
        if known_as and (ended := next((one for one in over if one.new.name == known_as), None)):
            id_ = show("schedule", ended.id)
            raise refused(f"the schedule {known_as} is {ended.state}", f"keepsaid schedule show {id_}")
        raise refused(f"there is no schedule {known_as}", "keepsaid schedule ls")
    return found


class ScheduleService:
    """Schedules of one instance. Times are milliseconds UTC.

    `jobs` are those that schedules may run by name, `channels` those that are open; `hint` wakes who runs them.
    """

    def __init__(self, store: Store, clock: Clock, ids: Ids, jobs: JobRunner, channels: Iterable[str]) -> None:
        self.view = store.schedules
        self.channels = set(channels)
        self.scheduler: Scheduler | None = None
        self.hint = Hint()
        self._store = store
        self._clock = clock
        self._ids = ids
        self._jobs = jobs

    async def replace(self, source: str, schedules: Sequence[NewSchedule]) -> int:
        """Replace the schedules of a source by these; returns how many changed."""
        now = self._clock.now_ms()
        wanted = tuple((replace(one, source=source), timing.first_due(one.timing, now)) for one in schedules)
        changed = await self._store.apply(scheduling.ReplaceSchedules(source, wanted, now))
        self._wake()
        return changed

    async def add(self, schedule: NewSchedule) -> Schedule:
        """Add a schedule under a new id; raises InputError when its time, channel, job or name cannot be."""
        now = self._clock.now_ms()
        new = replace(schedule, id=self._ids.next())
        self._check(new)
        if (next_at := timing.first_due(new.timing, now)) is None:
            raise refused("that time is in the past")
        if not await self._store.apply(scheduling.AddSchedule(new, next_at, now)):
            raise refused(f"there is a schedule {new.name!r} already")
        self._wake()
        return Schedule(new, "active", next_at, created_at=now)

    def _check(self, new: NewSchedule) -> None:
        try:
            timing.checked(new.timing)
        except ValueError as error:
            raise refused(str(error)) from None
        if not new.text.strip() or len(new.text) > _TEXT_CHARS_MAX or len(new.name) > _NAME_CHARS_MAX:
            limits = f"a text of at most {_TEXT_CHARS_MAX:,} characters, and a name of {_NAME_CHARS_MAX}"
            raise refused(f"a schedule needs {limits}")
        if new.what in (What.SAY, What.ASK) and (new.target is None or new.target.lane.channel not in self.channels):
            known = ", ".join(sorted(self.channels))
            raise refused(f"its target must be on an open channel: {known}")
        if new.what is What.RUN and self.scheduler is not None and new.text not in self._jobs.known:
            known = ", ".join(sorted(self._jobs.known)) or "nothing"
            raise refused(f"nothing here is called {new.text!r}; known are: {known}")

    async def find(self, known_as: str, number: int | None) -> Schedule:
        """A schedule by its id, or by the name of one that is not over; raises InputError."""
        return await find_schedule(self.view, known_as, number)

    async def move(self, schedule: Schedule, verb: str) -> bool:
        """Pause, resume or cancel one; False when its state does not allow it. Raises InputError for a past time."""
        now, next_at = self._clock.now_ms(), None
        if verb == "resume":
            next_at = timing.first_due(schedule.new.timing, now)
            if next_at is None and isinstance(schedule.new.timing, timing.Once):
                raise refused("that time is in the past", "keepsaid schedule run")
        if verb == "cancel" and schedule.new.source == "config":
            hint = f"keepsaid schedule pause {show('schedule', schedule.id)}"
            raise refused("it stands in the config: take it out there, or pause it", hint)
        done = await self._store.apply(scheduling.MoveSchedule(schedule.id, verb, now, next_at))
        self._wake()
        return done

    async def run(self, schedule: Schedule) -> bool:
        """Run one now, beside its times; False while it runs, or when it is over."""
        done = await self._store.apply(scheduling.RunNow(schedule.id, self._clock.now_ms()))
        self._wake()
        return done

    async def list(self, states: Sequence[str] = LIVE, limit: int = _LISTED_MAX, after: int = 0) -> Sequence[Schedule]:
        """Schedules in these states whose id is above `after`, by id."""
        return await self.view.schedules(states, after, min(limit, MAX_ID))

    def _wake(self) -> None:
        self.hint.set()
