"""Other bots: heard only where that is wanted, and not for ever, so that two of them cannot talk all night."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, site

from keepsaid.testing.providers.telegram import TelegramServer

_BOT: dict[str, Any] = {"from": {"id": 99, "is_bot": True, "first_name": "Other"}}
_EXCHANGES = 20


def settings(telegram: TelegramServer, **channel: Any) -> dict[str, Any]:
    """A home whose bot is the scripted one, open to everybody."""
    named = {"access": "anyone", "window_ms": 0, **channel}
    return {"telegram": {"token": telegram.token, "api_url": telegram.url}, "channels": {"telegram": named}}


async def test_bots_are_not_heard_by_default(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram)) as at:
        telegram.say("ping", sender=99, chat=99, **_BOT)
        telegram.say("hello")
        await telegram.wait_for(lambda: len(telegram.sent) == 1)
        assert at.rows("SELECT DISTINCT sender FROM message") == [("7",)]
        raw = {"update_id": 5, "message": {"message_id": 1, "chat": {"id": 99, "type": "private"}, "text": "x", **_BOT}}
        posted = await at.client.post("/v1/media/telegram", json=raw, headers=at.owner)
        assert posted.json() == {"ignored": "a bot said it"}


async def test_two_bots_do_not_talk_for_ever(tmp_path: Path) -> None:
    """The twenty-first message of a minute is kept and not answered; people are, and other bots too."""
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram, bots=True, answer="always")) as at:
        for number in range(_EXCHANGES):
            telegram.say(f"ping {number}", sender=99, chat=-50, **_BOT)
        await telegram.wait_for(lambda: telegram.waiting == 0 and bool(telegram.sent))
        telegram.say("ping again", sender=99, chat=-50, **_BOT)
        telegram.say("are you still there?", sender=7, chat=-50)
        await kept(at, _EXCHANGES + 2)
        dropped = at.rows(
            "SELECT text, batch.reason FROM message JOIN batch ON batch.lane_id = message.lane_id"
            " AND message.number BETWEEN batch.first AND batch.last WHERE batch.state = 'dropped'"
        )
        assert [text for text, _ in dropped] == ["ping again"]
        assert "answered each other too often" in dropped[0][1]


async def kept(at: Site, count: int) -> None:
    """Wait until so many messages are kept and routed."""
    sql = "SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM batch WHERE state = 'dropped')"
    while at.rows(sql) != [(count, 1)]:
        await at.client.get("/livez")


@pytest.mark.parametrize("medium", ["telegram"])
async def test_a_bot_that_posts_for_itself_is_heard_where_bots_are(tmp_path: Path, medium: str) -> None:
    raw = {"update_id": 5, "message": {"message_id": 1, "chat": {"id": 99, "type": "private"}, "text": "x", **_BOT}}
    async with site(tmp_path, channels={"http": {"bots": True}}) as at:
        posted = await at.client.post(f"/v1/media/{medium}", json=raw, headers=at.owner)
        assert posted.status_code == 201
