"""Files out on Discord: what the bot may not upload is named in words, and what may have arrived is looked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.test_discord import reply, texts

from keepsaid.adapters.channels.discord import DiscordChannel
from keepsaid.adapters.channels.discord_api import DiscordApi
from keepsaid.adapters.channels.discord_places import DiscordPlaces
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.domain.reply import Delivered, StoredReply
from keepsaid.domain.turn_files import TurnFile
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.providers.discord import BOT, TOKEN, DiscordServer
from keepsaid.testing.providers.discord_messages import DiscordFault
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.sending_contract import tried

_TEN_MINUTES = 600_000
_CONTENT = b"# Notes\n"
_GONE = "\\[notes.md could not be sent: it is not kept any more\\]"


async def read(file: TurnFile) -> bytes | None:
    """The bytes of the first file; the second is gone."""
    return _CONTENT if file.number == 1 else None


@asynccontextmanager
async def channel_of(discord: DiscordServer, clock: VirtualClock) -> AsyncIterator[DiscordChannel]:
    """A channel that reads its files by `read`."""
    api = DiscordApi(TOKEN, clock, discord.api_url)
    channel = DiscordChannel(api, SendingPace(clock, Rate(0), Rate(0)), DiscordPlaces(api, BOT), clock, read)
    try:
        yield channel
    finally:
        await channel.close()


def with_file(text: str, clock: VirtualClock, name: str = "notes.md", *, to: str | None = None) -> StoredReply:
    """A reply with a file."""
    file = TurnFile(1, 1, name, "text/markdown", len(_CONTENT), attached=True)
    return replace(reply(text, clock, to=to), files=(file,))


async def test_a_file_has_a_nonce_and_answers_where_there_are_no_words() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        asked = discord.say("hello")
        [result] = await tried(channel, with_file("", clock, to=asked))
        [sent] = discord.sent
        assert (result.outcome, result.provider_id) == (Delivered.CONFIRMED, sent.id)
        assert (sent.parameters["nonce"], sent.parameters["enforce_nonce"]) == ("k1.0", True)
        assert sent.parameters["attachments"] == [{"id": 0, "filename": "notes.md"}]
        assert sent.parameters["allowed_mentions"] == {"parse": []}
        assert sent.parameters["message_reference"]["message_id"] == asked
        await tried(channel, replace(with_file("see", clock, to=asked), id=2))
        assert ["message_reference" in one.parameters for one in discord.sent[1:]] == [True, False]


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (DiscordFault(413, 40_005, "Request entity too large"), "Discord answered 413; it is too large there"),
        (DiscordFault(400, 50_035, "Invalid Form Body"), "Discord answered 400"),
        (
            DiscordFault(403, 50_013, "Missing Permissions"),
            "Discord answered 403; the bot may lack the permission Attach Files",
        ),
    ],
    ids=lambda one: str(one.status) if isinstance(one, DiscordFault) else "",
)
async def test_words_stand_for_a_file_that_is_refused(refusal: DiscordFault, why: str) -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.messages.refused_files = refusal
        results = await tried(channel, with_file("here you are", clock))
        assert [one.outcome for one in results] == [Delivered.CONFIRMED, Delivered.CONFIRMED]
        assert results[1].detail == f"a file was not sent: {refusal.status}: {refusal}"
        assert texts(discord) == ["here you are", f"\\[notes.md could not be sent: {why}\\]"]


class BareFault(DiscordFault):
    """What a server before Discord refuses, without a word of it."""

    def as_json(self) -> dict[str, Any]:
        """An answer that names nothing."""
        return {}


async def test_a_file_that_is_too_large_on_the_way_is_refused_too() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.messages.refused_files = BareFault(413, 0, "Payload Too Large")
        [result] = await tried(channel, with_file("", clock))
        assert (result.outcome, result.detail) == (Delivered.CONFIRMED, "a file was not sent: 413: (no reason)")
        assert "Discord answered 413" in texts(discord)[0]


async def test_a_place_where_the_bot_may_not_write_is_no_refused_file() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.messages.gone["901"] = DiscordFault(403, 50_001, "Missing Access")
        [result] = await tried(channel, with_file("", clock))
        assert (result.outcome, discord.sent) == (Delivered.DEAD, [])


@pytest.mark.parametrize("name", ["notes.md", "my *list* \u72ac.md"], ids=["plain", "renamed"])
async def test_a_file_that_arrived_is_found_after_its_nonce(name: str) -> None:
    """Discord gives a file another name where it has spaces, or letters that are not ASCII."""
    clock = VirtualClock()
    mischief = one_after_the_other(Mischief.RESET_AFTER, method="create message")
    async with DiscordServer(mischief=mischief, now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        said = with_file("", clock, name)
        [first] = await tried(channel, said)
        await clock.advance(_TEN_MINUTES)
        [result] = await tried(channel, said, again=True)
        assert (first.outcome, result.outcome) == (Delivered.DOUBT, Delivered.CONFIRMED)
        assert result.detail == "an earlier try arrived"
        assert result.provider_id == discord.sent[0].id
        assert len(discord.sent) == 1


async def test_a_file_that_is_not_found_is_marked() -> None:
    """Neither the same words without a file are taken for it, nor another file."""
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        await tried(channel, replace(with_file("", clock, "other.md"), id=2))
        await clock.advance(_TEN_MINUTES)
        said = replace(with_file("", clock), tried_from=clock.now_ms() - _TEN_MINUTES)
        [result] = await tried(channel, said, again=True)
        assert result.outcome is Delivered.CONFIRMED
        assert texts(discord) == ["", "(may be a repeat)"]
        assert [file.name for one in discord.sent for file in one.files] == ["other.md", "notes.md"]


async def test_words_in_the_place_of_a_file_are_found_too() -> None:
    clock = VirtualClock()
    mischief = one_after_the_other(Mischief.RESET_AFTER, method="create message")
    async with DiscordServer(mischief=mischief, now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        said = with_file("", clock)
        gone = replace(said, files=(replace(said.files[0], number=2),))
        [first] = await tried(channel, gone)
        await clock.advance(_TEN_MINUTES)
        [result] = await tried(channel, gone, again=True)
        assert (first.outcome, result.detail) == (Delivered.DOUBT, "an earlier try arrived")
        assert texts(discord) == [_GONE]


async def test_what_a_repeat_cannot_send_is_marked_and_named() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        said = replace(with_file("", clock), tried_from=clock.now_ms() - _TEN_MINUTES)
        [result] = await tried(channel, replace(said, files=(replace(said.files[0], number=2),)), again=True)
        assert result.outcome is Delivered.CONFIRMED
        assert texts(discord) == [f"(may be a repeat)\n{_GONE}"]


async def test_a_rate_limit_is_no_refused_file() -> None:
    clock = VirtualClock()
    mischief = one_after_the_other(Mischief.SLOW_DOWN, method="create message")
    async with DiscordServer(mischief=mischief, now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        [result] = await tried(channel, with_file("", clock))
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        assert discord.sent == []
