"""Files that come by Discord, Slack and Matrix: fetched from their servers alone; what is not is named, and why."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.files_cast import MESSENGERS, ROOM, Messenger, OnDiscord, OnMatrix, OnSlack, OtherServer
from tests.unit.http_cast import site
from tests.unit.matrix_cast import channel_of as matrix_channel
from tests.unit.slack_cast import channel_of as slack_channel
from tests.unit.test_files import file_rows, user_parts, words_of
from tests.unit.test_telegram import until

from keepsaid.adapters.channels.discord import DiscordChannel
from keepsaid.adapters.channels.discord_api import DiscordApi
from keepsaid.adapters.channels.discord_places import DiscordPlaces
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.domain.message import Attachment
from keepsaid.errors import FileRefused, FileUnavailable
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.discord import BOT, DiscordServer
from keepsaid.testing.providers.kept_files import PNG
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.matrix_rooms import USER
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.slack import ACCOUNT, SlackServer

_FILE = Attachment("a", ref="mxc://test/a")

each_messenger = pytest.mark.parametrize("on", MESSENGERS, ids=lambda one: one.__name__)


@asynccontextmanager
async def discord_channel(discord: DiscordServer) -> AsyncIterator[DiscordChannel]:
    """The bot as it sends."""
    clock = VirtualClock()
    api = DiscordApi(discord.token, clock, discord.api_url)
    pace = SendingPace(clock, Rate(0.0), Rate(0.0))
    channel = DiscordChannel(api, pace, DiscordPlaces(api, BOT), clock)
    try:
        yield channel
    finally:
        await channel.close()


@each_messenger
async def test_a_picture_is_shown_and_kept(tmp_path: Path, on: type[Messenger]) -> None:
    script = Script(Say("a small dog"))
    who = on()
    async with who.server, ModelServer(script) as model, site(tmp_path, **who.home(model)) as at:
        await who.ready(at)
        who.send(PNG, "who is this?", kind="image/png")
        [request] = await model.wait_for(1)
        [picture] = [one for one in user_parts(request) if one["type"] == "image_url"]
        assert picture["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
        assert "who is this?" in words_of(request)
        assert await file_rows(at, "kept") == [("file-1", "image/png", len(PNG), "")]
        await who.server.wait_for(lambda: who.texts == ["a small dog"])
        assert who.files.asked == {"file-1": 1}


@pytest.mark.parametrize(("on", "expected"), [(OnDiscord, None), (OnSlack, "Bearer"), (OnMatrix, "Bearer")])
async def test_a_token_is_sent_only_where_files_need_it(
    tmp_path: Path, on: type[Messenger], expected: str | None
) -> None:
    who = on()
    async with who.server, site(tmp_path, **who.home()) as at:
        await who.ready(at)
        who.send(PNG, "look", kind="image/png")
        await file_rows(at, "kept")
        proof = who.files.headers["file-1"].get("authorization")
        assert proof == (f"{expected} {who.token}" if expected else None)


@each_messenger
@pytest.mark.parametrize("trouble", ["too large", "lies", "gone", "moved"])
async def test_what_is_not_fetched_is_named_with_its_reason(tmp_path: Path, on: type[Messenger], trouble: str) -> None:
    """No redirect is followed, and no reason names a token."""
    who = on()
    async with (
        OtherServer() as other,
        who.server,
        ModelServer(Script(Say("a pity"))) as model,
        site(tmp_path, **who.home(model, bytes_max=2_000)) as at,
    ):
        await who.ready(at)
        if trouble == "gone":
            who.files.gone.add("file-1")
        if trouble == "moved":
            who.files.moved["file-1"] = f"{other.url}/secret"
        content = bytes(3_000) if trouble in ("too large", "lies") else b"GIF89a"
        who.send(content, "look", size=10 if trouble == "lies" else None)
        [request] = await model.wait_for(1)
        assert "file-1 (not kept: " in words_of(request)
        [(_, _, _, reason)] = await file_rows(at, "left")
        expected = {"gone": f"{who.title} answered 404", "moved": "302"}
        assert expected.get(trouble, "it is larger than 0.002 MB") in reason
        assert who.token not in reason
        assert other.clients == 0


@pytest.mark.parametrize("on", [OnDiscord, OnSlack], ids=lambda one: one.__name__)
async def test_nothing_is_asked_of_another_server(tmp_path: Path, on: type[Messenger]) -> None:
    """Whoever sent the message chose its address."""
    who = on()
    async with OtherServer() as other, who.server, site(tmp_path, **who.home()) as at:
        await who.ready(at)
        who.send(PNG, "look", kind="image/png", url=f"{other.url}/attachments/1/file-1")
        [(_, _, _, reason)] = await file_rows(at, "left")
        assert reason == f"its address is not one of {who.title}"
        assert (other.clients, who.files.asked) == (0, {})


@each_messenger
async def test_what_was_being_fetched_is_fetched_after_a_restart(tmp_path: Path, on: type[Messenger]) -> None:
    """Also before the bot is known again."""
    who = on()
    async with who.server:
        who.files.cut.add("file-1")
        async with site(tmp_path, **who.home(wait_s=0.1)) as at:
            await who.ready(at)
            who.send(PNG * 9, "look", kind="image/png")
            await until(at, "SELECT 1 FROM file WHERE attempts > 0")
        who.files.cut.clear()
        async with site(tmp_path, **who.home()) as at:
            assert await file_rows(at, "kept") == [("file-1", "image/png", 9 * len(PNG), "")]


async def test_files_of_another_account_are_not_fetched() -> None:
    async with (
        DiscordServer() as discord,
        SlackServer() as slack,
        MatrixServer() as matrix,
        discord_channel(discord) as first,
        slack_channel(slack) as second,
        matrix_channel(matrix) as third,
    ):
        for channel in (first, second, third):
            with pytest.raises(FileRefused, match="another is not set up here any more"):
                await anext(channel.fetch("another", _FILE))


@pytest.mark.parametrize(
    "url",
    [
        "https://{host}.evil.example/a",
        "https://evil{host}/a",
        "https://{host}@evil.example/a",
        "https://evil.example/{host}",
        "http://{host}/a",
        "https://{host}:8443@[/a",
        "file:///etc/passwd",
    ],
)
async def test_an_address_that_looks_like_theirs_is_refused(url: str) -> None:
    """Before any server is asked; a FileUnavailable would say that one was."""
    async with (
        DiscordServer() as discord,
        SlackServer() as slack,
        discord_channel(discord) as first,
        slack_channel(slack) as second,
    ):
        place = {"url": url.format(host="cdn.discordapp.com"), "id": "1", "channel": "902", "message": "1"}
        with pytest.raises(FileRefused, match="its address") as caught:
            await anext(first.fetch(BOT, Attachment("a", ref=json.dumps(place))))
        assert caught.type is FileRefused
        with pytest.raises(FileRefused, match="its address") as caught:
            await anext(second.fetch(ACCOUNT, Attachment("a", ref=url.format(host="files.slack.com"))))
        assert caught.type is FileRefused


async def test_until_the_bot_is_known_files_are_fetched_later() -> None:
    """A refusal that passes too: the token may be replaced."""
    slack_away = SlackServer(one_after_the_other(Mischief.DROP, Mischief.SLOW_DOWN, method="auth.test"))
    acts = Mischief.DROP, Mischief.DROP, Mischief.SLOW_DOWN  # the first is asked once more
    matrix_away = MatrixServer(one_after_the_other(*acts, method="account/whoami"))
    async with (
        slack_away as slack,
        matrix_away as matrix,
        slack_channel(slack) as first,
        matrix_channel(matrix) as second,
    ):
        for channel, account in ((first, ACCOUNT), (second, USER)):
            with pytest.raises(FileUnavailable, match="cannot be reached"):
                await anext(channel.fetch(account, _FILE))
            with pytest.raises(FileUnavailable) as caught:
                await anext(channel.fetch(account, _FILE))
            assert caught.value.retry_after_s == 1


async def test_a_token_that_is_not_accepted_may_be_replaced() -> None:
    async with MatrixServer() as matrix, matrix_channel(matrix) as channel:
        name = matrix.media.files.keep(PNG)
        file = Attachment("a", ref=f"mxc://test/{name}")
        assert await anext(channel.fetch(USER, file)) == PNG
        matrix.media.token = "a newer one"
        with pytest.raises(FileUnavailable, match="the homeserver does not accept"):
            await anext(channel.fetch(USER, file))


async def test_an_expired_address_of_discord_is_renewed(tmp_path: Path) -> None:
    """The message is read again, once."""
    who = OnDiscord()
    async with who.server as discord, site(tmp_path, **who.home()) as at:
        await who.ready(at)
        file = discord.cdn.attach(discord.url, "902", PNG, content_type="image/png")
        discord.cdn.expire()
        discord.say("look", channel="902", attachments=[file])
        assert await file_rows(at, "kept") == [("file-1", "image/png", len(PNG), "")]
        assert discord.calls["read message"] == 1


async def test_a_deleted_message_of_discord_has_no_files(tmp_path: Path) -> None:
    who = OnDiscord()
    async with who.server as discord, site(tmp_path, **who.home()) as at:
        await who.ready(at)
        file = discord.cdn.attach(discord.url, "902", PNG, content_type="image/png")
        discord.cdn.expire()
        discord.messages.refuses_reading = True
        discord.say("look", channel="902", attachments=[file])
        [(_, _, _, reason)] = await file_rows(at, "left")
        assert "its message cannot be read: 404" in reason


async def test_a_token_of_slack_without_its_scope_is_named(tmp_path: Path) -> None:
    """Slack answers a login page, as if that were the file."""
    who = OnSlack()
    async with who.server as slack, site(tmp_path, **who.home()) as at:
        await who.ready(at)
        slack.uploads.has_scope = False
        who.send(PNG, "look", kind="image/png")
        [(_, _, _, reason)] = await file_rows(at, "left")
        assert "lacks the scope files:read" in reason


async def test_an_old_homeserver_is_asked_at_the_former_address(tmp_path: Path) -> None:
    """Without the token, which such servers do not ask for."""
    who = OnMatrix()
    async with who.server as matrix, site(tmp_path, **who.home()) as at:
        await who.ready(at)
        matrix.media.is_old = True
        who.send(PNG, "look", kind="image/png")
        assert await file_rows(at, "kept") == [("file-1", "image/png", len(PNG), "")]
        assert matrix.media.paths == [
            "/_matrix/client/v1/media/download/test/file-1",
            "/_matrix/media/v3/download/test/file-1",
        ]
        assert "authorization" not in who.files.headers["file-1"]


@pytest.mark.parametrize("url", ["mxc://test/../../sync", "https://127.0.0.1/file-1", "mxc://test/a?b", "mxc:///a"])
async def test_of_matrix_only_addresses_of_files_are_fetched(tmp_path: Path, url: str) -> None:
    """Another is named in the text alone, as a file of an encrypted room is."""
    who = OnMatrix()
    async with who.server as matrix, site(tmp_path, **who.home()) as at:
        await who.ready(at)
        who.send(PNG, "look", kind="image/png", url=url)
        sealed = {"url": "mxc://test/file-1", "key": {"k": "secret"}}
        matrix.send_file(PNG, "and this", ROOM, url=None, file=sealed)
        await until(at, "SELECT 1 WHERE (SELECT count(*) FROM message) = 2")
        assert at.rows("SELECT count(*) FROM file") == [(0,)]
        assert matrix.media.paths == []
