"""Daily: when it is the next time a certain hour of the day, somewhere."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo


def next_daily(after: int, hour: float, zone: tzinfo) -> int:
    """The first time it is this hour, such as 3.5 for half past three, after a time; milliseconds UTC."""
    then = datetime.fromtimestamp(after / 1_000, zone)
    due = then.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(hours=hour)
    if due <= then:
        due += timedelta(days=1)
    return int(due.timestamp() * 1_000)
