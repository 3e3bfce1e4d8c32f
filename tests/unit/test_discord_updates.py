"""Discord's dispatches as messages: who is addressed, where a message stands, and what is ignored or kept unread."""

from __future__ import annotations

from typing import Any

import pytest

from keepsaid.adapters.channels.discord_api import DiscordApi, DiscordUnreachable
from keepsaid.adapters.channels.discord_places import DiscordPlaces
from keepsaid.adapters.channels.discord_updates import CHANGED, CREATED, REACTED, DiscordBot, DiscordReader
from keepsaid.domain.message import EDITED, REACTION, UNREADABLE
from keepsaid.ports.channel import Incoming
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.providers.discord import BOT, DIRECT, GENERAL, GUILD, ROLE, TOKEN, DiscordServer
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other

_ANN = {"id": "8", "username": "ann", "global_name": "Ann"}
_BOT_USER = {"id": BOT, "username": "scripted_bot", "bot": True}
_CHANNEL = {"id": GENERAL, "type": 0, "name": "general"}
_THREAD = {"id": "950", "type": 11, "name": "a thread", "parent_id": GENERAL}
_GUILD = {"id": GUILD, "name": "The server", "roles": [{"id": ROLE, "tags": {"bot_id": BOT}}, {"id": "7"}]}


def said(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """A message of a server."""
    place = {"channel_id": GENERAL, "guild_id": GUILD, "type": 0, "edited_timestamp": None}
    return {"id": "1000", "author": _ANN, "content": text, "mentions": [], **place, **fields}


def reader_of(api: DiscordApi) -> DiscordReader:
    """A reader that has seen the server, as after a new session."""
    places = DiscordPlaces(api, BOT)
    places.take("GUILD_CREATE", _GUILD | {"channels": [_CHANNEL], "threads": [_THREAD]})
    return DiscordReader(places, DiscordBot(BOT, "scripted_bot"))


async def read(kind: str, told: dict[str, Any]) -> Incoming | None:
    """What a reader makes of a dispatch without asking Discord."""
    return await reader_of(DiscordApi(TOKEN, VirtualClock(), "http://127.0.0.1:9")).read(kind, told)


@pytest.mark.parametrize(
    ("fields", "is_addressed"),
    [
        ({}, False),
        ({"content": f"<@{BOT}> hello", "mentions": [_BOT_USER]}, True),
        ({"content": "@scripted_bot hello"}, False),
        ({"content": "<@8> hello", "mentions": [_ANN]}, False),
        ({"mention_roles": [ROLE]}, True),
        ({"mention_roles": ["7"]}, False),
        ({"mention_everyone": True}, False),
        ({"type": 19, "referenced_message": {"id": "5", "author": _BOT_USER}}, True),
        ({"type": 19, "referenced_message": {"id": "5", "author": _ANN}}, False),
        ({"type": 19, "referenced_message": None}, False),
        ({"mentions": "odd", "mention_roles": 7, "referenced_message": []}, None),
    ],
)
async def test_the_medium_says_who_is_addressed(fields: dict[str, Any], *, is_addressed: bool | None) -> None:
    incoming = await read(CREATED, said(**fields))
    assert incoming is not None
    if is_addressed is None:
        assert incoming.event == UNREADABLE
    else:
        assert incoming.addressed is is_addressed


async def test_a_thread_is_a_topic_of_its_channel() -> None:
    incoming = await read(CREATED, said(channel_id="950"))
    assert incoming is not None
    assert (incoming.conversation, incoming.topic, incoming.direct) == (f"discord:{GENERAL}", "950", False)
    assert incoming.conversation_name == "The server"
    incoming = await read(CREATED, said())
    assert incoming is not None
    assert (incoming.conversation, incoming.topic) == (f"discord:{GENERAL}", None)
    assert (incoming.conversation_name, incoming.name, incoming.account) == ("The server - general", "Ann", BOT)


async def test_message_without_a_server_is_direct_unless_its_channel_is_known() -> None:
    incoming = await read(CREATED, {name: one for name, one in said(channel_id=DIRECT).items() if name != "guild_id"})
    assert incoming is not None
    assert (incoming.direct, incoming.conversation) == (True, f"discord:{DIRECT}")
    told = {name: one for name, one in said().items() if name != "guild_id"}
    incoming = await read(CREATED, told)
    assert incoming is not None
    assert (incoming.direct, incoming.conversation) == (False, f"discord:{GENERAL}")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (CREATED, said(author=_BOT_USER)),
        (CREATED, said(type=7)),
        (CREATED, said("")),
        (CHANGED, said()),
        (CHANGED, {"id": "1000", "channel_id": GENERAL, "embeds": []}),
        (REACTED, {"user_id": BOT, "channel_id": GENERAL, "message_id": "1", "emoji": {"name": "👍"}}),
        (
            REACTED,
            {
                "user_id": "9",
                "channel_id": GENERAL,
                "message_id": "1",
                "emoji": {"name": "👍"},
                "member": {"user": {"id": "9", "bot": True}},
            },
        ),
        ("TYPING_START", {"channel_id": GENERAL}),
    ],
)
async def test_what_is_no_message_to_the_agent_is_ignored(kind: str, told: dict[str, Any]) -> None:
    assert await read(kind, told) is None


@pytest.mark.parametrize("told", [said(author=_ANN | {"bot": True}), said(webhook_id="5")])
async def test_another_bot_is_told_apart(told: dict[str, Any]) -> None:
    incoming = await read(CREATED, told)
    assert incoming is not None
    assert incoming.by_bot


async def test_edit_takes_the_place_of_the_message() -> None:
    incoming = await read(CHANGED, said("hello!", edited_timestamp="2026-11-27T10:00:00+00:00"))
    assert incoming is not None
    assert (incoming.event, incoming.provider_id) == (EDITED, "1000")
    assert incoming.external_id == "discord:1000:2026-11-27T10:00:00+00:00"


async def test_reaction_names_its_message() -> None:
    told = {"user_id": "8", "channel_id": "950", "message_id": "1000", "guild_id": GUILD}
    incoming = await read(
        REACTED, told | {"emoji": {"id": "5", "name": "party"}, "member": {"nick": "A", "user": _ANN}}
    )
    assert incoming is not None
    assert (incoming.text, incoming.event, incoming.reply_to, incoming.provider_id) == ("party", REACTION, "1000", None)
    assert (incoming.conversation, incoming.topic, incoming.name) == (f"discord:{GENERAL}", "950", "A")
    assert incoming.external_id == "discord:1000:8:party"


@pytest.mark.parametrize("fields", [{"author": None}, {"id": 1.5}, {"content": 7}, {"attachments": "odd"}])
async def test_what_cannot_be_read_is_kept_as_it_came(fields: dict[str, Any]) -> None:
    incoming = await read(CREATED, said(**fields))
    assert incoming is not None
    assert (incoming.event, incoming.text, incoming.account) == (UNREADABLE, "", BOT)
    assert b'"t": "MESSAGE_CREATE"' in (incoming.payload or b"")
    other = await read(CREATED, said(**fields | {"channel_id": "901901"}) | {"guild_id": None})
    assert other is not None
    assert other.external_id != incoming.external_id


async def test_a_thread_that_no_dispatch_showed_is_looked_up_once() -> None:
    """After a resume the gateway shows no channels again."""
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        thread = discord.add_thread("950")
        api = DiscordApi(TOKEN, clock, discord.api_url)
        reader = DiscordReader(DiscordPlaces(api, BOT), DiscordBot(BOT))
        for _ in range(2):
            incoming = await reader.read(CREATED, said(channel_id=thread, mention_roles=[ROLE]))
            assert incoming is not None
            assert (incoming.conversation, incoming.topic) == (f"discord:{GENERAL}", thread)
            assert incoming.addressed
        assert (discord.calls["channel"], discord.calls["guild"]) == (1, 1)
        unseen = await reader.read(CREATED, said(channel_id="12345"))
        assert unseen is not None
        assert (unseen.conversation, unseen.topic, unseen.direct) == ("discord:12345", None, False)
        await api.close()


async def test_a_place_that_cannot_be_looked_up_now_is_not_guessed() -> None:
    """The message would be filed in a conversation of its own for good."""
    clock = VirtualClock()
    mischief = one_after_the_other(Mischief.RESET_AFTER, method="channel")
    async with DiscordServer(now_ms=clock.now_ms, mischief=mischief) as discord:
        thread = discord.add_thread("950")
        api = DiscordApi(TOKEN, clock, discord.api_url)
        reader = DiscordReader(DiscordPlaces(api, BOT), DiscordBot(BOT))
        with pytest.raises(DiscordUnreachable):
            await reader.read(CREATED, said(channel_id=thread))
        incoming = await reader.read(CREATED, said(channel_id=thread))
        assert incoming is not None
        assert incoming.topic == thread
        await api.close()
