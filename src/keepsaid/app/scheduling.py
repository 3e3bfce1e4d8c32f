"""Scheduling, joined: what comes at a time in one instance, from its config, by commands, and built in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from keepsaid.app.reload import Prepared
from keepsaid.config import Config
from keepsaid.config.schedules import SchedulesConfig
from keepsaid.domain.commits import Received
from keepsaid.domain.fence import Fence
from keepsaid.domain.ids import MAX_ID, show
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Inbound
from keepsaid.domain.schedule import LIVE, NewSchedule, Schedule, What
from keepsaid.domain.scheduling import AddSchedule, MoveSchedule, ReplaceSchedules, RunNow
from keepsaid.domain.timing import Once, checked, first_due
from keepsaid.engine.errands import Errand, Errands
from keepsaid.engine.loops import Stage
from keepsaid.engine.scheduler import Reach, Scheduler, ScheduleStore
from keepsaid.errors import InputError
from keepsaid.ports.clock import Clock, Ids
from keepsaid.ports.hints import Hints
from keepsaid.ports.schedules import ScheduleView

OWNERS_LANE = Lane("terminal", "default", "terminal", "root:terminal")
"""Where the owner hears of what failed, as long as he has written in no direct chat."""

_STOP_S = 5.0
_LISTED_MAX = 100_000
_TEXT_CHARS_MAX, _NAME_CHARS_MAX = 20_000, 200


def refused(what: str) -> InputError:
    """Why a schedule cannot be added."""
    return InputError(what, safe="Nothing was changed.", hint="keepsaid schedule add --help")


async def one_of(view: ScheduleView, known_as: str, number: int | None) -> Schedule:
    """A schedule by its id, or by the name that a living one has; raises InputError."""
    found = None if number is None else await view.schedule(number)
    if found is None:
        living = await view.schedules(LIVE, 0, _LISTED_MAX)
        found = next((one for one in living if known_as and one.new.name == known_as), None)
    if found is None:
        raise InputError(f"there is no schedule {known_as}", safe="Nothing was changed.", hint="keepsaid schedule ls")
    return found


class Scheduling:
    """What comes at a time. Times are milliseconds UTC."""

    def __init__(self, config: Config, store: ScheduleStore, clock: Clock, ids: Ids, fence: Fence) -> None:
        self.view = store.schedules
        self._config = config.schedules
        self._store = store
        self._clock = clock
        self._ids = ids
        self._fence = fence
        self._errands = Errands(at_once=self._config.at_once)
        self._channels = {name for name, channel in config.channels.items() if channel.enabled}
        self._scheduler: Scheduler | None = None

    def learn(self, name: str, errand: Errand) -> None:
        """Know something by a name that schedules can run."""
        self._errands.known[name] = errand

    async def start(
        self, receive: Callable[[Inbound], Awaitable[Received]], hints: Hints, channels: Iterable[str]
    ) -> Sequence[Stage]:
        """Take up what a former process left, and what the config says now; returns the stage."""
        if not self._config.enabled:
            return ()
        self._channels |= set(channels)
        reach = Reach(receive, frozenset(self._channels), hints, OWNERS_LANE, self._fence)
        scheduler = Scheduler(self._store, self._clock, self._ids, reach, self._errands, self._config.quiet_hours())
        await scheduler.recover()
        self._scheduler = scheduler
        await self._follow(self._config)
        return (Stage("schedule", scheduler.work, scheduler.hint, vital=False),)

    @property
    def keys(self) -> tuple[str, ...]:
        """The settings that are followed while it works."""
        return ("schedules.named", "schedules.quiet", "schedules.timezone")

    async def prepare(self, config: Config) -> Prepared:
        """Make ready for changed settings."""
        return Prepared(partial(self._follow, config.schedules))

    async def _follow(self, settings: SchedulesConfig) -> None:
        self._config = settings
        if self._scheduler is not None:
            self._scheduler.quiet = settings.quiet_hours()
        zone = settings.timezone
        named = [one.schedule(self._ids.next(), name, zone) for name, one in settings.named.items()]
        await self.replace("config", named)

    async def stop(self) -> None:
        """Break off what is being run."""
        await self._errands.stop(_STOP_S)

    async def replace(self, source: str, schedules: Sequence[NewSchedule]) -> int:
        """Let the schedules of a source be these; returns how many changed."""
        now = self._clock.now_ms()
        wanted = tuple((replace(one, source=source), first_due(one.timing, now)) for one in schedules)
        changed = await self._store.apply(ReplaceSchedules(source, wanted, now))
        self._wake()
        return changed

    async def add(self, schedule: NewSchedule) -> Schedule:
        """Add one under a new id; raises InputError for what cannot come or be heard, or has another's name."""
        now = self._clock.now_ms()
        new = replace(schedule, id=self._ids.next())
        self._check(new)
        next_at = first_due(new.timing, now)
        if next_at is None:
            raise refused("that time is over")
        if not await self._store.apply(AddSchedule(new, next_at, now)):
            raise refused(f"there is a schedule {new.name!r} already")
        self._wake()
        return Schedule(new, "active", next_at, created_at=now)

    def _check(self, new: NewSchedule) -> None:
        try:
            checked(new.timing)
        except ValueError as error:
            raise refused(str(error)) from None
        if not new.text.strip() or len(new.text) > _TEXT_CHARS_MAX or len(new.name) > _NAME_CHARS_MAX:
            limits = f"a text of at most {_TEXT_CHARS_MAX:,} characters, and a name of {_NAME_CHARS_MAX}"
            raise refused(f"a schedule needs {limits}")
        if new.what in (What.SAY, What.ASK) and (new.target is None or new.target.lane.channel not in self._channels):
            known = ", ".join(sorted(self._channels))
            raise refused(f"it has to be heard on a channel that is open: {known}")
        if new.what is What.RUN and self._scheduler is not None and new.text not in self._errands.known:
            known = ", ".join(sorted(self._errands.known)) or "nothing"
            raise refused(f"nothing here is called {new.text!r}; known are: {known}")

    async def one(self, known_as: str, number: int | None) -> Schedule:
        """A schedule by its id, or by the name that a living one has; raises InputError."""
        return await one_of(self.view, known_as, number)

    async def move(self, schedule: Schedule, verb: str) -> bool:
        """Pause, resume or cancel one; False when it does not stand so. Raises InputError for a time that is over."""
        now, next_at = self._clock.now_ms(), None
        if verb == "resume":
            next_at = first_due(schedule.new.timing, now)
            if next_at is None and isinstance(schedule.new.timing, Once):
                raise InputError("that time is over", safe="Nothing was changed.", hint="keepsaid schedule run")
        if verb == "cancel" and schedule.new.source == "config":
            raise InputError(
                "it stands in the config: take it out there, or pause it",
                safe="Nothing was changed.",
                hint=f"keepsaid schedule pause {show('schedule', schedule.id)}",
            )
        done = await self._store.apply(MoveSchedule(schedule.id, verb, now, next_at))
        self._wake()
        return done

    async def run(self, schedule: Schedule) -> bool:
        """Run one now, beside its times; False when it is at work, or comes no more."""
        done = await self._store.apply(RunNow(schedule.id, self._clock.now_ms()))
        self._wake()
        return done

    async def listed(
        self, states: Sequence[str] = LIVE, limit: int = _LISTED_MAX, after: int = 0
    ) -> Sequence[Schedule]:
        """Schedules in these states behind an id, by id."""
        return await self.view.schedules(states, after, min(limit, MAX_ID))

    def _wake(self) -> None:
        if self._scheduler is not None:
            self._scheduler.hint.set()
