"""discord.py does with the scripted Discord as a normal bot does, and parses what it answers and dispatches."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import discord
import pytest
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from keepsaid.testing.providers.discord import BOT, DIRECT, GENERAL, GUILD, ROLE, DiscordServer
from keepsaid.testing.providers.discord_messages import DiscordFault
from keepsaid.testing.providers.discord_shapes import user_shape
from keepsaid.testing.providers.kept_files import PNG
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other

THREAD = "950"


class RunningClient:
    """A client of the library that is ready, and what it dispatched, by name."""

    def __init__(self, client: discord.Client) -> None:
        self.client = client
        self._seen: dict[str, asyncio.Queue[tuple[Any, ...]]] = {}

    def listen(self, name: str) -> None:
        """Keep what the client dispatches under a name."""
        queue = self._seen[name] = asyncio.Queue()

        async def keep(*parts: Any) -> None:
            queue.put_nowait(parts)

        keep.__name__ = f"on_{name}"
        self.client.event(keep)

    async def next(self, name: str) -> tuple[Any, ...]:
        """The next event of a name; raises TimeoutError."""
        async with asyncio.timeout(30):
            return await self._seen[name].get()


@asynccontextmanager
async def running(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch, token: str = ""
) -> AsyncIterator[RunningClient]:
    """A client that logged in, identified and is ready."""
    monkeypatch.setattr(Route, "BASE", server.api_url)
    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(server.gateway.url))
    intents = discord.Intents.default()
    intents.message_content = True
    client = discord.Client(intents=intents, guild_ready_timeout=0.05)
    run = RunningClient(client)
    for name in ("ready", "resumed", "message", "message_edit", "raw_reaction_add", "thread_create", "error"):
        run.listen(name)
    task = asyncio.ensure_future(client.start(token or server.token))
    ready = asyncio.ensure_future(run.next("ready"))
    try:
        await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        await ready
        yield run
    finally:
        await client.close()
        ready.cancel()
        await asyncio.gather(task, ready, return_exceptions=True)


async def test_client_logs_in_and_sees_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        user = run.client.user
        assert (user.id, user.name, user.bot) == (int(BOT), "scripted_bot", True)
        assert run.client.application_id == int(BOT)
        [guild] = run.client.guilds
        assert (guild.id, guild.name, guild.owner_id, guild.unavailable) == (int(GUILD), "The server", 7, False)
        assert guild.self_role.id == int(ROLE)
        assert guild.default_role.id == int(GUILD)
        assert guild.me.id == int(BOT)
        assert [(one.id, one.name) for one in guild.text_channels] == [(int(GENERAL), "general")]
        assert server.gateway.identifies[0]["intents"] & 1 << 15


async def test_rest_interface_shows_what_a_bot_looks_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        about = await run.client.application_info()
        assert (about.id, about.owner.id, about.flags.gateway_message_content_limited) == (int(BOT), 7, True)
        channel = await run.client.fetch_channel(int(GENERAL))
        assert (channel.id, channel.guild.id, channel.position) == (int(GENERAL), int(GUILD), 0)
        assert (await run.client.fetch_guild(int(GUILD), with_counts=False)).name == "The server"
        assert [one.id async for one in run.client.fetch_guilds(with_counts=False)] == [int(GUILD)]
        direct = await run.client.fetch_channel(int(DIRECT))
        assert [(one.id, one.global_name) for one in direct.recipients] == [(7, "Person 7")]


async def test_wrong_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server:
        with pytest.raises(discord.LoginFailure):
            async with running(server, monkeypatch, "another"):
                pass


async def test_privileged_intents_that_are_denied_end_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server:
        server.gateway.denied_intents = 1 << 15
        with pytest.raises(discord.PrivilegedIntentsRequired):
            async with running(server, monkeypatch):
                pass


async def test_message_in_a_channel_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        number = server.say(f"hello <@{BOT}>", mentions=[user_shape(BOT, "scripted_bot", is_bot=True)])
        [message] = await run.next("message")
        assert (str(message.id), message.content, message.type) == (
            number,
            f"hello <@{BOT}>",
            discord.MessageType.default,
        )
        assert (message.channel.id, message.guild.id) == (int(GENERAL), int(GUILD))
        assert isinstance(message.author, discord.Member)
        assert (message.author.id, message.author.display_name, message.author.bot) == (7, "Person 7", False)
        assert [one.id for one in message.mentions] == [int(BOT)]
        assert (message.attachments, message.embeds, message.edited_at, message.pinned) == ([], [], None, False)
        assert abs((message.created_at - discord.utils.snowflake_time(int(number))).total_seconds()) < 0.001


async def test_direct_message_has_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        server.say("hi", channel=DIRECT)
        [message] = await run.next("message")
        assert message.guild is None
        assert isinstance(message.channel, discord.DMChannel)
        assert (message.channel.id, message.author.id, message.content) == (int(DIRECT), 7, "hi")


async def test_edit_and_reaction_name_their_message(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        number = server.say("helo")
        await run.next("message")
        server.edit(number, "hello")
        before, after = await run.next("message_edit")
        assert (str(after.id), before.content, after.content) == (number, "helo", "hello")
        assert after.edited_at is not None
        given: dict[str, Any] = {"user_id": "7", "channel_id": GENERAL, "message_id": number, "guild_id": GUILD}
        given |= {"emoji": {"id": None, "name": "👍"}, "burst": False, "type": 0}
        server.gateway.dispatch("MESSAGE_REACTION_ADD", given)
        [reaction] = await run.next("raw_reaction_add")
        assert (str(reaction.message_id), reaction.user_id, str(reaction.emoji)) == (number, 7, "👍")


async def test_thread_is_known_and_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        server.add_thread(THREAD)
        [thread] = await run.next("thread_create")
        assert (thread.id, thread.parent_id, thread.name, thread.archived) == (950, int(GENERAL), "thread 950", False)
        server.say("in here", channel=THREAD)
        [message] = await run.next("message")
        assert isinstance(message.channel, discord.Thread)
        assert (message.channel.id, message.channel.parent.id) == (950, int(GENERAL))
        answer = await message.channel.send("yes")
        assert (answer.channel.id, answer.content) == (950, "yes")
        assert [(one.channel, one.text) for one in server.sent] == [(THREAD, "yes")]


async def test_thread_from_before_is_shown_with_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server:
        server.add_thread(THREAD)
        async with running(server, monkeypatch) as run:
            [thread] = run.client.guilds[0].threads
            assert (thread.id, thread.parent.id, thread.owner_id) == (950, int(GENERAL), 7)


async def test_reply_comes_back_with_what_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        number = server.say("what?")
        [asked] = await run.next("message")
        sent = await asked.reply("**that**", mention_author=False)
        assert (sent.content, sent.author.id, sent.type) == ("**that**", int(BOT), discord.MessageType.reply)
        assert (str(sent.reference.message_id), sent.reference.resolved.content) == (number, "what?")
        assert sent.reference.channel_id == int(GENERAL)
        [echo] = await run.next("message")
        assert (echo.id, echo.author.id, echo.author.bot) == (sent.id, int(BOT), True)
        assert [one.content async for one in asked.channel.history(after=asked)] == ["**that**"]


async def test_same_nonce_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        channel = run.client.get_channel(int(GENERAL))
        first, second = [await channel.send("once", nonce="k1.0") for _ in range(2)]
        assert first.nonce == "k1.0"
        # the library always asks for one message a nonce
        assert first.id == second.id
        assert [one.text for one in server.sent] == ["once"]


async def test_typing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        await run.client.get_channel(int(GENERAL)).typing()
        assert server.typing == [GENERAL]


async def test_client_waits_when_it_is_rate_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    mischief = one_after_the_other(Mischief.SLOW_DOWN, method="create message")
    async with DiscordServer(mischief=mischief) as server, running(server, monkeypatch) as run:
        await run.client.get_channel(int(GENERAL)).send("hi")
        assert server.calls["create message"] == 2
        assert [one.text for one in server.sent] == ["hi"]


async def test_client_keeps_to_the_rate_in_the_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        server.messages.rate = (1, 0.3)
        for text in ("one", "two", "three"):
            await run.client.get_channel(int(GENERAL)).send(text)
        assert [one.text for one in server.sent] == ["one", "two", "three"]
        assert server.calls["create message"] == 3


async def test_refusals_are_those_the_library_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        channel = run.client.get_channel(int(GENERAL))
        with pytest.raises(discord.HTTPException) as found:
            await channel.send("x" * 2_001)
        assert (found.value.status, found.value.code) == (400, 50_035)
        server.messages.gone[GENERAL] = DiscordFault(403, 50_001, "Missing Access")
        with pytest.raises(discord.Forbidden) as refused:
            await channel.send("hi")
        assert refused.value.code == 50_001
        with pytest.raises(discord.NotFound):
            await run.client.fetch_channel(12345)


@pytest.mark.parametrize("code", [0, 4_000])
async def test_lost_session_is_resumed(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        server.say("before")
        await run.next("message")
        if code:
            await server.gateway.shut(code)
        else:
            server.gateway.drop()
        server.say("meanwhile")
        [message] = await run.next("message")
        assert message.content == "meanwhile"
        await run.next("resumed")
        assert (server.calls["identify"], server.calls["resume"]) == (1, 1)


async def test_session_that_cannot_be_resumed_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        server.gateway.answers_resume.append(False)
        server.gateway.end_sessions()
        await run.next("ready")
        server.say("after")
        [message] = await run.next("message")
        assert message.content == "after"
        assert server.calls["identify"] == 2


async def test_attachment_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        sent = server.send_file(PNG, "look", channel=GENERAL, filename="dog.png", content_type="image/png")
        [message] = await run.next("message")
        [file] = message.attachments
        assert (file.id, file.filename, file.content_type) == (int(sent["id"]), "dog.png", "image/png")
        assert file.size == len(PNG)
        assert await file.read() == PNG


async def test_file_is_uploaded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer() as server, running(server, monkeypatch) as run:
        channel = run.client.get_channel(int(GENERAL))
        message = await channel.send("look", file=discord.File(io.BytesIO(PNG), "a dog.png"), nonce="k1.0")
        [sent] = server.sent
        assert [(one.name, one.content) for one in sent.files] == [("a dog.png", PNG)]
        [file] = message.attachments
        assert (file.filename, file.title, file.size) == ("a_dog.png", "a dog", len(PNG))
        assert await file.read() == PNG
        with pytest.raises(discord.HTTPException) as found:
            await channel.send(file=discord.File(io.BytesIO(bytes(10 * 1_024 * 1_024 + 1)), "large.bin"))
        assert (found.value.status, found.value.code) == (413, 40_005)
