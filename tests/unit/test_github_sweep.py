"""Failed deliveries of a webhook are requested again, once for each sweep, until they arrive or seem hopeless."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.github_cast import TOKEN, GitHubServer, Refused

from keepsaid.adapters.channels.github_api import GitHubApi
from keepsaid.adapters.channels.github_sweep import RedeliverySweep
from keepsaid.domain.prompt import Json
from keepsaid.testing.clock import VirtualClock

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
HOOK = "acme/api/55"
REDELIVER = "/repos/acme/api/hooks/55/deliveries/{}/attempts"


def delivery(number: int, guid: str, status: int, age_ms: int = 60_000) -> dict[str, Json]:
    at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=NOW_MS - age_ms)
    return {"id": number, "guid": guid, "status_code": status, "delivered_at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}


@asynccontextmanager
async def sweeping(
    folder: Path, deliveries: Sequence[dict[str, Json]], page: int = 100, hook: str = HOOK
) -> AsyncIterator[tuple[RedeliverySweep, GitHubServer, VirtualClock]]:
    async with GitHubServer(page) as server:
        server.deliveries += deliveries
        clock = VirtualClock(NOW_MS)
        yield RedeliverySweep(GitHubApi(TOKEN, server.url), [hook], clock, folder / "sweep.json"), server, clock


def requested(server: GitHubServer) -> list[str]:
    return [one.path for one in server.requests if one.method == "POST"]


async def test_what_failed_is_requested_and_what_arrived_is_not(tmp_path: Path) -> None:
    failed = [delivery(4, "d", 0), delivery(3, "c", 502), delivery(2, "b", 202), delivery(1, "a", 503)]
    async with sweeping(tmp_path, [delivery(9, "a", 200), *failed]) as (sweep, server, clock):
        assert await sweep.work() == clock.due_ms() + 900_000
        assert requested(server) == [REDELIVER.format(4), REDELIVER.format(3)]


async def test_all_pages_back_to_the_last_sweep_are_read(tmp_path: Path) -> None:
    old = [delivery(10 - n, f"g{n}", 200, n * HOUR_MS) for n in range(6)]
    async with sweeping(tmp_path, [*old, delivery(1, "old", 0, 20 * HOUR_MS)], page=2) as (sweep, server, clock):
        await sweep.work()
        assert requested(server) == [REDELIVER.format(1)]
        await clock.advance(60_000)
        server.requests.clear()
        await sweep.work()
        assert [one.method for one in server.requests] == ["GET", "GET"], "no further than an hour before"


async def test_what_fails_every_time_is_given_up(tmp_path: Path) -> None:
    """The count is on disk: a restart does not begin again."""
    for n in range(7):
        async with sweeping(tmp_path, [delivery(1, "a", 401)]) as (sweep, server, _):
            await sweep.work()
            assert len(requested(server)) == (1 if n < 5 else 0)


async def test_what_arrived_after_a_request_is_left_alone(tmp_path: Path) -> None:
    async with sweeping(tmp_path, [delivery(1, "a", 0)]) as (sweep, server, _):
        await sweep.work()
        server.deliveries.insert(0, delivery(2, "a", 202, 0))
        await sweep.work()
        assert requested(server) == [REDELIVER.format(1)]


async def test_deliveries_older_than_what_github_keeps_are_not_requested(tmp_path: Path) -> None:
    async with sweeping(tmp_path, [delivery(1, "a", 0, 80 * HOUR_MS)]) as (sweep, server, _):
        await sweep.work()
        assert requested(server) == []


@pytest.mark.parametrize("reaction", [Refused(404), Refused(403), Refused(500)])
async def test_a_refused_sweep_is_logged_and_tried_again(
    tmp_path: Path, reaction: Refused, caplog: pytest.LogCaptureFixture
) -> None:
    async with sweeping(tmp_path, [delivery(1, "a", 0)]) as (sweep, server, _):
        server.reactions.append(("GET", reaction))
        await sweep.work()
        assert f"GitHub refused a sweep of {HOOK}: HTTP {reaction.status}" in caplog.text
        await sweep.work()
        assert requested(server) == [REDELIVER.format(1)]


async def test_a_refused_request_ends_the_sweep(tmp_path: Path) -> None:
    async with sweeping(tmp_path, [delivery(2, "b", 0), delivery(1, "a", 0)]) as (sweep, server, _):
        server.reactions.append(("POST", Refused(403)))
        await sweep.work()
        assert requested(server) == [REDELIVER.format(2)]
        await sweep.work()
        assert requested(server) == [REDELIVER.format(2), REDELIVER.format(2), REDELIVER.format(1)]


async def test_a_hook_of_an_organisation(tmp_path: Path) -> None:
    async with sweeping(tmp_path, [delivery(1, "a", 0)], hook="acme/55") as (sweep, server, _):
        await sweep.work()
        assert requested(server) == ["/orgs/acme/hooks/55/deliveries/1/attempts"]


async def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text("[1]")
    async with sweeping(tmp_path, [delivery(1, "a", 0)]) as (sweep, server, _):
        await sweep.work()
        assert requested(server) == [REDELIVER.format(1)]
