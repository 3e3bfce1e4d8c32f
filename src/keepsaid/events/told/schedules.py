"""What is told of schedules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.events.schema import Field, Schema, an_id, number, word

_SCHEDULE = {"schedule": an_id("schedule", "its id")}
_RUN = {**_SCHEDULE, "due": number("the time the run is for, milliseconds UTC")}


def _of_run(meaning: str, **more: Field) -> Schema:
    return Schema(meaning, "schedule", {**_RUN, **more})


def _of_schedule(meaning: str, **more: Field) -> Schema:
    return Schema(meaning, "schedule", {**_SCHEDULE, **more})


SCHEDULES: Mapping[str, Schema] = MappingProxyType(
    {
        "schedule.added": _of_schedule(
            "A schedule was added.",
            source=word("who asked for it"),
            what=word("what is done", "say", "ask", "run", "task"),
        ),
        "schedule.fired": _of_run(
            "The time of a schedule came, and a run is due.", late_ms=number("milliseconds after its time")
        ),
        "schedule.executed": _of_run("A run was executed.", reason=word("what is said of it").if_any()),
        "schedule.delivered": _of_run("What a run had to say has left."),
        "schedule.undelivered": _of_run("What a run had to say cannot be delivered.", reason=word("why").if_any()),
        "schedule.silent": _of_run("The agent was asked, and had no answer.", reason=word("why").if_any()),
        "schedule.failed": _of_run("A run failed.", reason=word("why").if_any()),
        "schedule.skipped": _of_run("A time was not run for.", reason=word("why")),
        "schedule.interrupted": _of_run("A run ended with its process, or with its task.", reason=word("why").if_any()),
        "schedule.disabled": _of_schedule(
            "A schedule failed too often in a row, and comes no more.",
            failures=number("how often"),
            reason=word("why, the last time"),
        ),
        "schedule.paused": _of_schedule("A person paused a schedule."),
        "schedule.resumed": _of_schedule("A person let a schedule come again."),
        "schedule.cancelled": _of_schedule("A schedule was cancelled."),
        "schedule.done": _of_schedule("A schedule came for the last time."),
    }
)
"""Topics that begin with `schedule.`."""
