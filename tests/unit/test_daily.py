"""Once a day: the next time it is an hour, by the clock of the place, also where that is set."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from keepsaid.domain.timing import next_daily

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "hour", "zone", "due"),
    [
        ("2026-01-05T02:59:59Z", 3, UTC, "2026-01-05T03:00:00Z"),
        ("2026-01-05T03:00:00Z", 3, UTC, "2026-01-06T03:00:00Z"),
        ("2026-01-05T12:00:00Z", 3.5, UTC, "2026-01-06T03:30:00Z"),
        ("2026-01-05T12:00:00Z", 3, BERLIN, "2026-01-06T02:00:00Z"),
        ("2026-03-28T12:00:00Z", 4, BERLIN, "2026-03-29T02:00:00Z"),
        ("2026-10-24T12:00:00Z", 4, BERLIN, "2026-10-25T03:00:00Z"),
    ],
)
def test_the_next_time_it_is_an_hour(now: str, hour: float, zone: ZoneInfo, due: str) -> None:
    asked, wanted = (int(datetime.fromisoformat(told).timestamp() * 1_000) for told in (now, due))
    assert next_daily(asked, hour, zone) == wanted
