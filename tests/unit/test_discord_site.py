"""Discord with the whole runtime: what is written to the bot is answered, also what was written while it was off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.http_cast import site
from tests.unit.test_telegram import line_that_is

from keepsaid.domain.line import LineState
from keepsaid.testing.providers.discord import BOT, DIRECT, GENERAL, TOKEN, DiscordServer

_OWNER = [{"channel": "discord", "account": BOT, "sender": "7"}]


def settings(discord: DiscordServer, **more: Any) -> dict[str, Any]:
    listed = {"discord": {"allow": [GENERAL]}}
    return {"discord": {"token": TOKEN, "api_url": discord.api_url}, "owner": _OWNER, "channels": listed, **more}


async def test_what_is_written_to_the_bot_is_answered(tmp_path: Path) -> None:
    """In a direct message, and in a listed channel where it is mentioned; a stranger is sent a code."""
    async with DiscordServer() as discord, site(tmp_path, **settings(discord)) as at:
        assert (await line_that_is(at, LineState.UP))["account"] == BOT
        discord.say("my dog is called Rex", channel=DIRECT)
        await discord.wait_for(lambda: len(discord.sent) == 1)
        discord.say("nothing for the bot", sender="8")
        asked = discord.say(f"<@{BOT}> what is the name of my dog?", sender="8", mentions=[{"id": BOT}])
        await discord.wait_for(lambda: len(discord.sent) == 2)
        assert [one.channel for one in discord.sent] == [DIRECT, GENERAL]
        assert discord.sent[1].parameters["message_reference"]["message_id"] == asked
        assert discord.sent[1].parameters["allowed_mentions"] == {"parse": []}
        names = {row[0] for row in at.rows("SELECT name FROM cursor")}
        assert {"session", "seq"} <= names


async def test_what_was_written_while_it_was_off_is_answered_once(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        async with site(tmp_path, **settings(discord)) as at:
            await line_that_is(at, LineState.UP)
            discord.say("one", channel=DIRECT)
            await discord.wait_for(lambda: len(discord.sent) == 1)
        discord.say("two", channel=DIRECT)
        async with site(tmp_path, **settings(discord)) as at:
            await discord.wait_for(lambda: len(discord.sent) == 2)
            assert at.rows("SELECT count(*) FROM message") == [(2,)]
            assert at.rows("SELECT count(*) FROM lane") == [(1,)]
