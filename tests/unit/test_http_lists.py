"""Lists over HTTP have a limit, and say what follows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.http_cast import site

from keepsaid.interfaces.task_shapes import parse_schedule


async def test_schedules_come_in_pages_by_their_ids(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as here:
        for n in range(5):
            await here.instance.services.schedules.add(parse_schedule({"every_s": 86_400, "say": str(n)}, "UTC"))
        said, after = list[str](), ""
        while True:
            response = await here.client.get(f"/v1/schedules?limit=2{after}", headers=here.owner)
            page = response.json()["schedules"]
            assert len(page) <= 2
            if not page:
                break
            said += [one["text"] for one in page]
            after = f"&after={page[-1]['id']}"
    assert said == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("path", ["/v1/schedules", "/v1/tasks", "/v1/replies"])
@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "", "1e3", "٣"])
async def test_a_limit_that_is_none_is_refused(path: str, limit: str, tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as here:
        response = await here.client.get(path, params={"limit": limit}, headers=here.owner)
        assert response.status_code == 400
        assert response.json()["title"] == "limit must be a number from 1 to 1000"


async def test_what_follows_nothing_is_refused(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as here:
        response = await here.client.get("/v1/schedules?after=tea", headers=here.owner)
    assert response.status_code == 400
