"""Settings of schedules, and the schedules that the config names."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from keepsaid.config.section import Section
from keepsaid.domain.lane import Lane, lane_key
from keepsaid.domain.moment import moment
from keepsaid.domain.schedule import NewSchedule, Target, What
from keepsaid.domain.timing import Cron, Every, Once, Quiet, Timing, checked, known_zone, quiet_of


class HeardConfig(Section):
    """Where something is heard."""

    channel: str = "terminal"
    """The channel."""
    account: str = "default"
    """The login or bot there."""
    conversation: str = "terminal"
    """The conversation there, as the channel calls it."""
    topic: str | None = None
    """Its topic, if it has some."""
    direct: bool = False
    """Whether one person alone is there with the agent."""

    def target(self) -> Target:
        """Who hears of it."""
        key = lane_key(self.conversation, self.topic)
        return Target(Lane(self.channel, self.account, self.conversation, key), direct=self.direct)


class ScheduleConfig(Section):
    """One schedule: when it comes (cron, every_s or at), and what is done (say, ask, run or task)."""

    cron: str | None = None
    """Five fields: minute, hour, day of the month, month, day of the week."""
    every_s: float | None = Field(None, ge=1, le=366 * 86_400)
    """Seconds between two times."""
    at: str | None = None
    """One time, such as 2026-05-04T18:00, UTC unless it says otherwise."""
    timezone: str | None = None
    """Of the cron expression; by default schedules.timezone."""
    say: str | None = None
    """A text that is posted as it is."""
    ask: str | None = None
    """What the agent is asked; its answer is posted."""
    run: str | None = None
    """Something that has a name here and is run."""
    task: str | None = None
    """What a worker is to do; the owner is told what came of it."""
    to: HeardConfig = HeardConfig()
    """Who hears what is said or answered, and nobody else."""
    urgent: bool = False
    """Whether it is said in quiet hours too."""

    @model_validator(mode="after")
    def whole(self) -> Self:
        """Refuse one that does not say when, or what, or says it twice."""
        if sum(one is not None for one in (self.cron, self.every_s, self.at)) != 1:
            raise ValueError("say when it comes by one of cron, every_s and at")
        if len(self._what()) != 1:
            raise ValueError("say what is done by one of say, ask, run and task")
        if not "".join(self._what().values()).strip():
            raise ValueError("what is said, asked, run or to be done is empty")
        checked(self.timing("UTC"))
        return self

    def _what(self) -> dict[What, str]:
        said = {What.SAY: self.say, What.ASK: self.ask, What.RUN: self.run, What.TASK: self.task}
        return {what: text for what, text in said.items() if text is not None}

    def timing(self, zone: str) -> Timing:
        """When it comes."""
        if self.cron is not None:
            return Cron(self.cron, self.timezone or zone)
        return Every(int(self.every_s * 1_000)) if self.every_s is not None else Once(moment(self.at or ""))

    def schedule(self, number: int, name: str, zone: str) -> NewSchedule:
        """The schedule, under an id."""
        [(what, text)] = self._what().items()
        target = self.to.target() if what in (What.SAY, What.ASK) else None
        return NewSchedule(number, "config", name, self.timing(zone), what, text, target, urgent=self.urgent)


class SchedulesConfig(Section):
    """What comes at a time."""

    enabled: bool = True
    """Whether anything comes at all."""
    timezone: str = "UTC"
    """The time zone of cron expressions that name none, and of quiet hours."""
    quiet: str = ""
    """Hours in which nothing is said that can wait, such as 22:00-07:00; empty for none."""
    at_once: int = Field(4, ge=1, le=64)
    """So many named things are run at once."""
    agent_max: int = Field(20, ge=0, le=1_000)
    """So many schedules may the agent keep for one conversation; 0 gives it no tools for them."""
    agent_least_s: float = Field(300.0, ge=1)
    """Seconds at least between two times of a schedule that the agent adds."""
    named: dict[str, ScheduleConfig] = Field(default_factory=dict)
    """Schedules by name."""

    @field_validator("timezone")
    @classmethod
    def known(cls, timezone: str) -> str:
        """Refuse a zone that nobody knows."""
        return known_zone(timezone).key

    @model_validator(mode="after")
    def readable(self) -> Self:
        """Refuse what are no hours."""
        self.quiet_hours()
        return self

    def quiet_hours(self) -> Quiet | None:
        """The hours in which nothing is said that can wait."""
        return quiet_of(self.quiet, self.timezone)
