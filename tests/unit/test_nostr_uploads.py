"""Files that go with replies on Nostr: encrypted, kept at servers that the owner names, and then announced."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.http_cast import site
from tests.unit.nostr_cast import AGENT, SECRET, pool_of, reply_of
from tests.unit.test_files_nostr import ANN, certificate, logs_in
from tests.unit.test_telegram import line_that_is, until

from keepsaid.adapters.channels.nostr.channel import NostrChannel
from keepsaid.adapters.channels.nostr.files import NostrFiles, attachment_of
from keepsaid.adapters.channels.nostr.people import NostrPeople
from keepsaid.adapters.channels.nostr.sealing import sealed_upload
from keepsaid.adapters.channels.nostr.uploading import NostrUploads
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.adapters.channels.public_address import public_address
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.config.messengers import NostrConfig
from keepsaid.domain.line import Cursor, LineState
from keepsaid.domain.reply import Delivered, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.domain.turn_files import TurnFile
from keepsaid.ports.channel import abilities_of
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_files import NostrFileServer, opened_file
from keepsaid.testing.providers.nostr_people import NostrPerson

_ROOM = "nostr:direct:the-room-with-ann"
_NOTES = b"# Notes\n\nmilk, bread"
_NOT_TAKEN = "[notes.md could not be sent: no server of files takes it]"


@dataclass
class Sender:
    """The account as it sends to the people of a room at a relay; `kept` are the bytes of its files by number."""

    relay: NostrRelayServer
    hosts: Sequence[str]
    people: str = ANN.public
    kept: dict[int, bytes] = field(default_factory=lambda: {1: _NOTES})
    more: dict[str, Any] = field(default_factory=dict)

    async def source(self, file: TurnFile) -> bytes | None:
        return self.kept.get(file.number)

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[NostrChannel]:
        """The channel of a process."""
        pool, clock = pool_of(SystemClock(), self.relay.url), SystemClock()
        people = NostrPeople(AGENT, MemoryInbox())
        people.commit([Cursor(AGENT, _ROOM.replace("nostr:direct:", "people:"), self.people)])
        uploads = NostrUploads(pool, self.hosts, self.source, **self.more)
        channel = NostrChannel(pool, people, SendingPace(clock, Rate(0.0), Rate(0.0)), uploads=uploads)
        try:
            yield channel
        finally:
            await channel.close()

    async def send(self, reply: StoredReply, *bodies: str) -> SendResult:
        """Send the only part of a reply once, in a process of its own."""
        async with self.channel() as channel:
            [body] = bodies or await channel.split(reply)
            return await channel.send_part(reply, ReplyPart(reply.id, 0, body))

    async def bodies(self, reply: StoredReply) -> Sequence[str]:
        async with self.channel() as channel:
            return await channel.split(reply)


def with_file(text: str = "", name: str = "notes.md") -> StoredReply:
    file = TurnFile(1, 1, name, "text/markdown", len(_NOTES), attached=True)
    return replace(reply_of(text, _ROOM), files=(file,))


@asynccontextmanager
async def relay_of_ann() -> AsyncIterator[NostrRelayServer]:
    async with NostrRelayServer() as relay:
        await relay.store(ANN.relay_list(relay.url))
        yield relay


async def test_the_agent_sends_a_file_that_only_its_receiver_can_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its key is in no log, and its server has nothing that can be read."""
    caplog.set_level(logging.DEBUG)
    script = Script(Call("attach_file", {"name": "notes.txt", "text": _NOTES.decode()}), Say("here you are"))
    async with relay_of_ann() as relay, NostrFileServer() as host, ModelServer(script) as model:
        named = {"secret_key": SECRET, "relays": [relay.url], "lookup_relays": [], "media_servers": [host.url]}
        settings: dict[str, Any] = {
            "nostr": named,
            "owner": [{"channel": "nostr", "account": AGENT, "sender": ANN.public}],
        }
        settings["models"] = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        async with site(tmp_path, **settings) as at:
            await line_that_is(at, LineState.UP)
            await relay.store(ANN.write("write it down", AGENT)[1])
            await until(at, "SELECT 1 FROM reply WHERE state = 'sent'")
            assert ANN.read_texts(relay) == ["here you are"]
            [message] = ANN.read_files(relay)
        assert opened_file(host, message) == ("notes.txt", _NOTES)
        tags = {tag[0]: tag[1] for tag in message["tags"]}
        assert (tags["p"], tags["file-type"], tags["encryption-algorithm"]) == (ANN.public, "text/plain", "aes-gcm")
        assert message["content"] == f"{host.url}/{tags['x']}"
        assert not any(b"milk" in one for one in host.files.contents.values())
        assert not any(tags["decryption-key"] in text for text in [caplog.text, *logs_in(tmp_path)])
        files = NostrFiles((host.url,))
        ref = attachment_of(str(message["content"]), tags).ref
        assert b"".join([piece async for piece in files.pieces(ref)]) == _NOTES
        await files.close()


async def test_without_a_server_words_name_the_file() -> None:
    async with relay_of_ann() as relay, Sender(relay, ()).channel() as channel:
        assert abilities_of(channel).uploads == 0
        reply = with_file("here you are").within(abilities_of(channel).uploads)
        assert (await channel.send(reply)).outcome is Delivered.CONFIRMED
        assert "notes.md (text/markdown, 20 bytes) cannot be sent here" in ANN.read_texts(relay)[0]


async def test_each_try_announces_the_same_file() -> None:
    """It is uploaded once, whatever the relays answer; another process goes on with the same key."""
    async with relay_of_ann() as relay, NostrFileServer() as host:
        sender, reply = Sender(relay, (host.url,)), with_file()
        [body] = await sender.bodies(reply)
        assert host.calls == {}
        relay.mischief = one_after_the_other(Mischief.RESET_AFTER, method="EVENT")
        assert (await sender.send(reply, body)).outcome is Delivered.DOUBT
        assert (await sender.send(reply, body)).outcome is Delivered.CONFIRMED
        [message] = ANN.read_files(relay)
        assert opened_file(host, message) == ("notes.md", _NOTES)
        assert host.calls == {"HEAD": 2, "PUT": 1}


async def test_a_room_has_one_file_for_all() -> None:
    bob = NostrPerson("bob", lambda: SystemClock().now_ms() // 1_000)
    async with relay_of_ann() as relay, NostrFileServer() as host:
        await relay.store(bob.relay_list(relay.url))
        people = " ".join(sorted((ANN.public, bob.public)))
        assert (await Sender(relay, (host.url,), people).send(with_file())).outcome is Delivered.CONFIRMED
        assert [opened_file(host, one) for one in (*ANN.read_files(relay), *bob.read_files(relay))] == [
            ("notes.md", _NOTES)
        ] * 2
        assert host.calls["PUT"] == 1


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 413, 415])
async def test_words_say_that_no_server_takes_it(status: int) -> None:
    """No redirect is followed: another server would get what was meant for this one."""
    async with relay_of_ann() as relay, NostrFileServer() as host:
        host.answers["PUT"] = status
        result = await Sender(relay, (host.url,)).send(with_file())
        where = host.url.removeprefix("http://")
        assert result.outcome is Delivered.CONFIRMED
        assert result.detail == f"a file was not sent: {where} answered {status}"
        assert (ANN.read_texts(relay), ANN.read_files(relay)) == ([_NOT_TAKEN], [])
        assert "GET" not in host.calls


async def test_a_file_that_is_too_large_for_its_server() -> None:
    async with relay_of_ann() as relay, NostrFileServer(bytes_max=10) as host:
        result = await Sender(relay, (host.url,)).send(with_file())
        assert (result.outcome, ANN.read_texts(relay)) == (Delivered.CONFIRMED, [_NOT_TAKEN])


@pytest.mark.parametrize(("status", "wait_ms"), [(500, None), (503, None), (408, None)])
async def test_the_reply_waits_for_a_server_that_may_take_it(status: int, wait_ms: int | None) -> None:
    """Nothing was published; it costs no try."""
    async with relay_of_ann() as relay, NostrFileServer() as host:
        host.answers["PUT"] = status
        sender, reply = Sender(relay, (host.url,)), with_file()
        [body] = await sender.bodies(reply)
        result = await sender.send(reply, body)
        assert (result.outcome, result.outage, result.retry_after_ms) == (Delivered.RETRY, True, wait_ms)
        assert (ANN.read_texts(relay), ANN.read_files(relay)) == ([], [])
        host.answers.clear()
        host.mischief = one_after_the_other(Mischief.SLOW_DOWN, method="PUT")
        assert (await sender.send(reply, body)).retry_after_ms == 1_000
        assert (await sender.send(reply, body)).outcome is Delivered.CONFIRMED
        assert len(ANN.read_files(relay)) == 1


async def test_a_server_that_says_yes_has_to_have_it() -> None:
    async with relay_of_ann() as relay, NostrFileServer() as host:
        host.answers["PUT"] = 200
        result = await Sender(relay, (host.url,)).send(with_file())
        assert result.outcome is Delivered.RETRY
        assert "answered 200, and does not have the file" in result.detail
        assert ANN.read_files(relay) == []


async def test_another_server_takes_what_the_first_does_not() -> None:
    """The message names both; what comes next goes to the second first."""
    async with relay_of_ann() as relay, NostrFileServer() as first, NostrFileServer() as second:
        first.answers["PUT"] = 402
        async with Sender(relay, (first.url, f"{second.url}/")).channel() as channel:
            assert (await channel.send(with_file())).outcome is Delivered.CONFIRMED
            assert (await channel.send(replace(with_file(), id=2))).outcome is Delivered.CONFIRMED
        one, two = ANN.read_files(relay)
        assert [str(one["content"]).rpartition("/")[0], str(two["content"]).rpartition("/")[0]] == [
            first.url,
            second.url,
        ]
        [fallback] = [tag[1] for tag in one["tags"] if tag[0] == "fallback"]
        assert opened_file(second, {**one, "content": fallback}) == ("notes.md", _NOTES)
        assert opened_file(second, two) == ("notes.md", _NOTES)
        assert first.calls == {"HEAD": 1, "PUT": 1}


async def test_what_is_gone_or_another_file_by_then_is_not_sent() -> None:
    async with relay_of_ann() as relay, NostrFileServer() as host:
        sender, reply = Sender(relay, (host.url,)), with_file()
        [body] = await sender.bodies(reply)
        sender.kept[1] = b"another"
        result = await sender.send(reply, body)
        assert (result.outcome, result.detail) == (Delivered.CONFIRMED, "a file was not sent: it is not kept any more")
        sender.kept.clear()
        assert (await sender.send(with_file(name="list.md"))).outcome is Delivered.CONFIRMED
        words = [f"[{name} could not be sent: it is not kept any more]" for name in ("notes.md", "list.md")]
        assert ANN.read_texts(relay) == words
        assert host.calls == {}


async def test_a_conversation_of_kind_4_gets_words() -> None:
    async with relay_of_ann() as relay, NostrFileServer() as host:
        await Sender(relay, (host.url,), f"4 {ANN.public}").send(with_file())
        assert ANN.read_texts(relay) == ["[notes.md could not be sent: messages of kind 4 bring no files]"]


async def test_without_the_package_that_encrypts_words_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with relay_of_ann() as relay, NostrFileServer() as host:
        sender, reply = Sender(relay, (host.url,)), with_file()
        [body] = await sender.bodies(reply)
        monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
        why = "the package cryptography, which encrypts files, is not installed"
        assert (await sender.send(reply, body)).detail == f"not sent: {why}"
        await sender.send(reply)
        assert ANN.read_texts(relay) == [f"[notes.md could not be sent: {why}]"]


@pytest.mark.parametrize("server", ["https://10.0.0.1", "https://nas.local", "https://[::1]:1"])
async def test_no_server_of_a_network_of_its_own_is_asked(server: str) -> None:
    """Only one on this machine that is named without TLS, as for tests."""
    async with relay_of_ann() as relay:
        sender = Sender(relay, (server,), more={"find_address": public_address})
        result = await sender.send(with_file())
        assert (result.outcome, ANN.read_texts(relay)) == (Delivered.CONFIRMED, [_NOT_TAKEN])
        assert "is not https:// at a public address" in result.detail


async def test_the_address_that_was_checked_is_dialled_and_has_to_prove_its_name(tmp_path: Path) -> None:
    async def find(url: str, scheme: str) -> str:
        return "127.0.0.1"

    theirs, believed = certificate(tmp_path, "files.example")
    more = {"find_address": find, "make_client": lambda: httpx2.AsyncClient(verify=believed, trust_env=False)}
    async with relay_of_ann() as relay, NostrFileServer() as host, tls_to(host, theirs) as port:
        sender = Sender(relay, (f"https://files.example:{port}",), more=more)
        assert (await sender.send(with_file())).outcome is Delivered.CONFIRMED
        [message] = ANN.read_files(relay)
        told = str(message["content"]).replace(f"https://files.example:{port}", host.url)
        assert opened_file(host, {**message, "content": told}) == ("notes.md", _NOTES)
        other = Sender(relay, (f"https://other.example:{port}",), more=more)
        result = await other.send(replace(with_file(), id=2))
        assert result.outcome is Delivered.RETRY
        assert "cannot be reached" in result.detail


@asynccontextmanager
async def tls_to(host: NostrFileServer, context: ssl.SSLContext) -> AsyncIterator[int]:
    """The port of a server that speaks TLS, and passes on what comes in both directions."""

    async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_connection("127.0.0.1", int(host.url.rpartition(":")[2]))
        await asyncio.gather(copied(reader, before), copied(behind, writer))

    server = await asyncio.start_server(passed, "127.0.0.1", ssl=context)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def test_a_key_is_not_shown() -> None:
    made = sealed_upload(with_file().files[0], _NOTES, ("https://files.example",))
    assert made.file.key.hex() not in repr(made.file)
    assert repr(made.file.key) not in repr(made.file)


@pytest.mark.parametrize(
    "server",
    ["http://files.example", "https://", "https://a@files.example", "https://files.example/?a", "files.example"],
)
def test_what_is_no_server_is_refused(server: str) -> None:
    with pytest.raises(ValueError, match="the address of a server of files begins with https://"):
        NostrConfig(media_servers=(server,))
