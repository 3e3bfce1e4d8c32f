"""A real Synapse with SQLite on loopback: skipped where it is not installed, and only among the long tests.

KEEPSAID_SYNAPSE names the Python that has it; without, it is this one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixUnreachable, path_of
from keepsaid.adapters.channels.matrix.channel import MatrixChannel
from keepsaid.adapters.channels.matrix.line import MatrixAccount, MatrixLine
from keepsaid.adapters.channels.matrix.listener import MatrixListener
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.domain.line import Cursor
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import Delivered, ReplyDraft, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.ports.channel import Incoming
from keepsaid.testing.listening import LineLog

PYTHON = os.environ.get("KEEPSAID_SYNAPSE", sys.executable)
_SERVER = "synapse.app.homeserver"
_MESSAGES_OFTEN = "\nrc_message: {per_second: 1000, burst_count: 1000}\ntrusted_key_servers: []\n"


class SynapseInbox:
    """Keeps messages by their keys, and cursors."""

    def __init__(self) -> None:
        self.kept: dict[str, Incoming] = {}
        self.stored: dict[str, str] = {}
        self._news = asyncio.Condition()

    async def put(self, incoming: Incoming) -> bool:
        raise AssertionError(incoming)

    async def put_all(self, incoming: Sequence[Incoming], cursors: Sequence[Cursor] = ()) -> None:
        self.kept |= {str(one.external_id): one for one in incoming}
        self.stored |= {cursor.name: cursor.value for cursor in cursors}
        async with self._news:
            self._news.notify_all()

    async def cursors(self, _account: str) -> dict[str, str]:
        return dict(self.stored)

    async def wait_for_count(self, count: int) -> list[str]:
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: len(self.kept) >= count and "since" in self.stored)
        return [one.text for one in self.kept.values()]


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PYTHON, "-m", *words], cwd=cwd, check=False, capture_output=True, text=True, timeout=120)


@pytest.fixture
def homeserver(tmp_path: Path) -> Iterator[str]:
    """The address of a new Synapse with the users bot and ann, whose password is pw."""
    generate = ("--server-name", "test", "--config-path", "hs.yaml", "--generate-config", "--report-stats", "no")
    if run(_SERVER, *generate, cwd=tmp_path).returncode != 0:
        pytest.skip("Synapse is not installed (KEEPSAID_SYNAPSE)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "hs.yaml"
    told = config.read_text().replace("port: 8008", f"port: {port}").replace("    - ::1\n", "")
    config.write_text(told.partition("trusted_key_servers")[0] + _MESSAGES_OFTEN)
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen([PYTHON, "-m", _SERVER, "--config-path", "hs.yaml"], cwd=tmp_path) as server:
        try:
            asyncio.run(_wait_until_it_answers(url))
            for user in ("bot", "ann"):
                words = ("-u", user, "-p", "pw", "--no-admin", "-c", "hs.yaml", url)
                assert run("synapse._scripts.register_new_matrix_user", *words, cwd=tmp_path).returncode == 0
            yield url
        finally:
            server.terminate()


async def _wait_until_it_answers(url: str) -> None:
    api, clock = MatrixApi("", url), SystemClock()
    async with asyncio.timeout(60):
        while True:
            with suppress(MatrixUnreachable):
                await api.call("GET", "/login")
                break
            await clock.wait(asyncio.Event(), 200)
    await api.close()


async def log_in(url: str, name: str) -> tuple[MatrixApi, str]:
    """A client of a user, and its user id."""
    api = MatrixApi("", url)
    login = {"type": "m.login.password", "identifier": {"type": "m.id.user", "user": name}, "password": "pw"}
    told = await api.call("POST", "/login", login)
    await api.close()
    return MatrixApi(str(told["access_token"]), url), str(told["user_id"])


@asynccontextmanager
async def reading(account: MatrixAccount, inbox: SynapseInbox) -> AsyncIterator[None]:
    listener = MatrixListener(account, MatrixLine(SystemClock(), LineLog()), lambda _user: True)
    task = asyncio.create_task(listener.listen(inbox))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def say(ann: MatrixApi, room: str, key: str, text: str) -> None:
    await ann.call("PUT", path_of("rooms", room, "send", "m.room.message", key), {"msgtype": "m.text", "body": text})


@pytest.mark.soak
def test_a_conversation_with_a_real_homeserver(homeserver: str) -> None:
    asyncio.run(_converse(homeserver))


async def _converse(url: str) -> None:
    (bot, me), (ann, _) = await log_in(url, "bot"), await log_in(url, "ann")
    account, inbox, clock = MatrixAccount(bot), SynapseInbox(), SystemClock()
    async with reading(account, inbox):
        await inbox.wait_for_count(0)
        room = str((await ann.call("POST", "/createRoom", {"preset": "private_chat", "name": "Kitchen"}))["room_id"])
        await say(ann, room, "t0", "before the invitation")
        await ann.call("POST", path_of("rooms", room, "invite"), {"user_id": me})
        await say(ann, room, "t1", "since the invitation")
        assert await inbox.wait_for_count(1) == ["since the invitation"]
    one = next(iter(inbox.kept.values()))
    assert (one.direct, one.name, one.conversation_name) == (True, "ann", "Kitchen")
    for n in range(90):
        await say(ann, room, f"g{n}", f"{n}")
    async with reading(account, inbox):
        assert (await inbox.wait_for_count(91))[1:] == [f"{n}" for n in range(90)]
        channel = MatrixChannel(account, SendingPace(clock, Rate(0.0), Rate(0.0)), clock)
        lane = Lane("matrix", me, one.conversation, lane_key(one.conversation))
        reply = StoredReply(7, lane, 1, "sending", ReplyDraft(7, "**hi**"), created_at=clock.now_ms())
        (body,) = await channel.split(reply)
        first = await channel.send_part(reply, ReplyPart(7, 0, body))
        again = await channel.send_part(reply, ReplyPart(7, 0, body, possible_duplicate=True))
        assert first.outcome is again.outcome is Delivered.CONFIRMED
        assert first.provider_id == again.provider_id
    await bot.close()
    await ann.close()
