"""Parameters of an address: one that a route does not know is refused, and not taken for none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.http_cast import Site, site


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Site]:
    """A server of its own."""
    async with site(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    "address",
    [
        "/v1/memories?qeury=boat",
        "/v1/memories?query=boat&archived=yes",
        "/v1/people?all=1",
        "/v1/entities?kinds=person",
        "/v1/replies?chanel=http",
        "/v1/tasks?states=open",
        "/v1/schedules?alll=1",
    ],
)
async def test_what_a_route_does_not_know_is_refused(one: Site, address: str) -> None:
    response = await one.client.get(address, headers=one.owner)
    assert response.status_code == 400
    assert response.json()["code"] == "KS-HTTP-BODY"
    assert (await one.client.get(address.partition("?")[0], headers=one.owner)).status_code == 200


@pytest.mark.parametrize("archived", ["1", "0", "true", "True", ""])
async def test_a_flag_is_read_as_programs_write_it(one: Site, archived: str) -> None:
    response = await one.client.get(f"/v1/memories?query=boat&archived={archived}", headers=one.owner)
    assert response.status_code == 200
