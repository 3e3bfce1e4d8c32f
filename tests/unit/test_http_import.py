"""The operator's route for imports: for the owner alone, batch by batch; what is wrong is refused, nothing is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.bundle_cast import bundle, home
from tests.unit.http_cast import Site, refused, site

from keepsaid.domain.bundle import RECORDS_MAX
from keepsaid_testkit.contracts.learning import said


async def tell(running: Site, body: object, *, owner: bool = True) -> httpx2.Response:
    headers = running.owner if owner else {}
    return await running.client.post("/v1/memories/import", json=body, headers=headers)


@pytest.fixture
async def line(tmp_path: Path) -> dict[str, Any]:
    """A memory as it stands in a bundle."""
    async with home(tmp_path, "one") as store:
        await store.learn([said("m1", "the boat is painted blue and white")], 5)
        [line] = await bundle(store, tmp_path / "all.jsonl")
        return line


async def test_records_are_looked_at_taken_over_and_learned(tmp_path: Path, line: dict[str, Any]) -> None:
    async with site(tmp_path / "home") as running:
        for do, outcome in (("look", "new"), ("take", "new"), ("take", "same"), ("learn", "same"), ("look", "same")):
            answer = await tell(running, {"do": do, "records": [line]})
            assert answer.status_code == 200
            assert [one["outcome"] for one in answer.json()["verdicts"]] == [outcome], do
        key = bytes(range(32)).hex()
        assert (await tell(running, {"do": "key"})).json() == {"adopted": False, "key_print": ""}
        adopted = (await tell(running, {"do": "key", "key": key})).json()
        assert adopted["adopted"]
        assert adopted["key_print"] != ""
        assert not (await tell(running, {"do": "key", "key": key[::-1]})).json()["adopted"]


async def test_what_is_wrong_is_refused_with_nothing_taken(tmp_path: Path, line: dict[str, Any]) -> None:
    async with site(tmp_path / "home") as running:
        bad: list[dict[str, Any]] = [
            {},
            {"do": "eat", "records": []},
            {"do": "take"},
            {"do": "take", "records": "all"},
            {"do": "take", "records": [line] * (RECORDS_MAX + 1)},
            {"do": "take", "records": [line, {"type": "memory"}]},
            {"do": "take", "records": [line, 5]},
            {"do": "take", "records": [line], "contested": "none"},
            {"do": "take", "records": [line], "contested": ["zz"]},
            {"do": "take", "records": [line], "contested": [5]},
            {"do": "key", "key": 5},
        ]
        for body in bad:
            refused(await tell(running, body), 400)
        refused(await tell(running, {"do": "take", "records": [line]}, owner=False), 401)
        told = (await tell(running, {"do": "look", "records": [line]})).json()
        assert told["verdicts"][0]["outcome"] == "new"
