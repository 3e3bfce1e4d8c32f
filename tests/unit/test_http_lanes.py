"""The operator's routes for lanes: begin anew, summarise; for the owner alone, and what is wrong is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.http_cast import Site, refused, site

LANE = {"channel": "http", "account": "default", "conversation": "room", "key": "root:room"}
ROUTES = ["reset", "compact"]


async def tell(running: Site, verb: str, body: object, *, owner: bool = True) -> httpx2.Response:
    headers = running.owner if owner else {}
    if isinstance(body, bytes):
        return await running.client.post(f"/v1/lanes/{verb}", content=body, headers=headers)
    return await running.client.post(f"/v1/lanes/{verb}", json=body, headers=headers)


async def said(running: Site, *texts: str) -> None:
    """Ann says things in the room, and each is answered."""
    for text in texts:
        await running.settled((await running.say(text)).json()["id"])


def lanes(running: Site) -> list[tuple[Any, ...]]:
    """How far each lane is summarised or cut, and how it moved."""
    return running.rows("SELECT summarised_until, floor, version FROM lane_context ORDER BY lane_id")


async def test_a_lane_begins_anew_and_what_was_said_stays_stored(tmp_path: Path) -> None:
    async with site(tmp_path) as running:
        await said(running, "my boat is blue", "it leaks")
        first = await tell(running, "reset", LANE)
        again = await tell(running, "reset", LANE)
        assert (first.status_code, first.json(), again.json()) == (200, {"records": 4}, {"records": 0})
        assert [floor for _, floor, _ in lanes(running)] == [4]
        assert running.rows("SELECT count(*) FROM transcript") == [(4,)]


async def test_a_lane_is_summarised_at_once_where_that_is_asked(tmp_path: Path) -> None:
    async with site(tmp_path, compaction={"keep": 1}) as running:
        await said(running, "we decided to sell the boat", "my boat is blue", "what else?")
        due = await tell(running, "compact", LANE)
        assert (due.status_code, due.json()) == (200, {"told": "There was nothing to summarise."})
        assert running.rows("SELECT count(*) FROM lane_summary") == [(0,)]
        at_once = await tell(running, "compact", {**LANE, "now": True})
        assert at_once.json() == {"told": "The conversation so far was summarised."}
        [(first, text)] = running.rows("SELECT first, text FROM lane_summary")
        assert first == 1
        assert "we decided to sell the boat" in text


@pytest.mark.parametrize("verb", ROUTES)
async def test_a_lane_that_is_not_there_is_refused_and_nothing_is_made(tmp_path: Path, verb: str) -> None:
    async with site(tmp_path) as running:
        await said(running, "hello")
        for part in LANE:
            told = refused(await tell(running, verb, {**LANE, part: "elsewhere", "now": True}), 404)
            assert "there is no lane" in told["title"]
            assert told["safe"] == "Nothing was changed."
        assert running.rows("SELECT count(*) FROM lane") == [(1,)]
        assert running.rows("SELECT count(*) FROM lane_summary") == [(0,)]


@pytest.mark.parametrize("verb", ROUTES)
async def test_a_lane_that_is_not_named_in_full_is_refused(tmp_path: Path, verb: str) -> None:
    async with site(tmp_path) as running:
        await said(running, "hello")
        before = lanes(running)
        for part in LANE:
            for wrong in ("", None, 7, ["room"]):
                told = refused(await tell(running, verb, {**LANE, part: wrong}), 400)
                assert told["title"] == "a lane is named by channel, account, conversation, key, each a text"
        for body in (b"", b"{", b"[]", b'"room"', b"\xff"):
            refused(await tell(running, verb, body), 400)
        refused(await tell(running, verb, b" " * 100_001), 413)
        assert lanes(running) == before


@pytest.mark.parametrize("verb", ROUTES)
async def test_only_the_owner_is_let_in(tmp_path: Path, verb: str) -> None:
    async with site(tmp_path) as running:
        await said(running, "hello")
        before = lanes(running)
        refused(await tell(running, verb, LANE, owner=False), 401)
        assert lanes(running) == before
