"""Pushing replies, against the real reply receiver."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from tests.unit.moved_loop import MovedLoop, on_moved_loop

from keepsaid.adapters.channels.pull import PullChannel
from keepsaid.adapters.channels.push import PushChannel
from keepsaid.domain.ids import show
from keepsaid.domain.message import Lane
from keepsaid.domain.reply import Delivered, ReplyDraft, Sending, SendResult, StoredReply
from keepsaid.ports.channel import Channel
from keepsaid.testing.reply_receiver import (
    ACCEPT,
    ACCEPT_THEN_RESET,
    DROP,
    HANG,
    ReceiverReaction,
    ReplyReceiver,
    refuse,
    scripted,
    seeded,
)

LANE = Lane("http", "default", "http:chat:42", "topic:http:chat:42:7")
SHORT_S = 0.2
LONG_S = 3_600.0


def reply_to(url: str | None, text: str = "It hangs in the boathouse.") -> StoredReply:
    return StoredReply(4_096, LANE, 77, "sending", ReplyDraft(4_096, text, url=url, reply_to="m-1"), fence=3)


@asynccontextmanager
async def pushing(host: str, timeout_s: float = 5.0) -> AsyncIterator[PushChannel]:
    channel = PushChannel("http", [host], timeout_s)
    try:
        yield channel
    finally:
        await channel.close()


async def tried(reaction: ReceiverReaction, timeout_s: float = 5.0) -> tuple[SendResult, ReplyReceiver]:
    async with ReplyReceiver(scripted(reaction)) as receiver, pushing(receiver.host, timeout_s) as channel:
        return await channel.send(reply_to(receiver.url)), receiver


@asynccontextmanager
async def answering(answer: Callable[[asyncio.StreamWriter], None]) -> AsyncIterator[str]:
    """A server that reads a request's head and then does as `answer` says; yields its host."""
    ended: list[asyncio.Future[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.get_running_loop().create_future())
        await reader.readuntil(b"\r\n\r\n")
        answer(writer)
        with suppress(OSError):
            if not writer.is_closing():
                await reader.read()
            writer.close()
            await writer.wait_closed()
        ended[-1].set_result(None)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*ended)
        await server.wait_closed()


# What arrives


async def test_a_reply_arrives_whole() -> None:
    result, receiver = await tried(ACCEPT)
    assert result == SendResult(Delivered.CONFIRMED, provider_id="post-1")
    (posted,) = receiver.accepted
    assert posted.json == {
        "id": show("reply", 4_096),
        "conversation": "http:chat:42",
        "lane": "topic:http:chat:42:7",
        "topic": "7",
        "text": "It hangs in the boathouse.",
        "notice": False,
        "possible_duplicate": False,
        "reply_to": "m-1",
        "turn": show("turn", 77),
    }
    assert (posted.key, posted.possible_duplicate) == ("keepsaid-1000", False)
    assert posted.headers["content-type"] == "application/json"


async def test_a_possible_duplicate_says_so_and_keeps_its_key() -> None:
    async with ReplyReceiver(scripted(ACCEPT_THEN_RESET)) as receiver, pushing(receiver.host) as channel:
        reply = reply_to(receiver.url)
        assert (await channel.send(reply)).outcome is Delivered.DOUBT
        assert (await channel.send(replace(reply, possible_duplicate=True))).outcome is Delivered.CONFIRMED
    first, second = receiver.accepted
    assert (first.possible_duplicate, second.possible_duplicate) == (False, True)
    assert second.json["possible_duplicate"] is True
    assert first.key == second.key


async def test_a_notice_without_a_turn() -> None:
    async with ReplyReceiver() as receiver, pushing(receiver.host) as channel:
        draft = ReplyDraft(1, "It failed three times. \ud800\0", notice=True, url=receiver.url)
        assert (await channel.send(StoredReply(1, LANE, None, "sending", draft))).outcome is Delivered.CONFIRMED
        (posted,) = await receiver.wait_for(1)
    assert (posted.json["notice"], posted.json["turn"], posted.json["reply_to"]) == (True, None, None)
    assert posted.json["text"] == "It failed three times. \ud800\0"


# What comes back


@pytest.mark.parametrize("status", [200, 201, 202, 204])
async def test_success_confirms(status: int) -> None:
    result, _ = await tried(ReceiverReaction(status=status, body=b""))
    assert result == SendResult(Delivered.CONFIRMED)


@pytest.mark.parametrize(
    ("body", "given_id"),
    [
        (b'{"id": "m-9"}', "m-9"),
        (b'{"id": 9}', "9"),
        (b'{"id": " \\u0000 "}', "\ufffd"),
        (b'{"id": "' + b"x" * 300 + b'"}', "x" * 199 + "…"),
        (b'{"id": true}', None),
        (b'{"id": null}', None),
        (b'{"id": ""}', None),
        (b'["id"]', None),
        (b"fine", None),
        (b"[" * 50_000, None),
        (b'{"id": "\xff"}', None),
        (b'{"id": "m-9", "x": "' + b"x" * 1_000_000 + b'"}', None),
    ],
    ids=lambda value: repr(value)[:20],
)
async def test_the_receivers_id_is_kept(body: bytes, given_id: str | None) -> None:
    result, _ = await tried(ReceiverReaction(body=body))
    assert result == SendResult(Delivered.CONFIRMED, provider_id=given_id)


async def test_a_conflict_means_it_has_it_already() -> None:
    result, _ = await tried(refuse(409))
    assert result.outcome is Delivered.CONFIRMED


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 507])
async def test_trouble_over_there_is_tried_again(status: int) -> None:
    result, receiver = await tried(refuse(status))
    assert result == SendResult(Delivered.RETRY, f"HTTP {status}")
    assert receiver.accepted == []


@pytest.mark.parametrize(
    ("retry_after", "wait_ms"),
    [
        ("7", 7_000),
        ("0", 0),
        ("99999999999999", 86_400_000),
        ("Fri, 31 Dec 2032 23:59:59 GMT", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_it_waits_as_long_as_it_is_told(status: int, retry_after: str, wait_ms: int | None) -> None:
    result, _ = await tried(refuse(status, retry_after))
    assert (result.outcome, result.retry_after_ms) == (Delivered.RETRY, wait_ms)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 422, 304])
async def test_a_refusal_is_final(status: int) -> None:
    result, _ = await tried(refuse(status))
    assert result == SendResult(Delivered.DEAD, f"HTTP {status}")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(status: int) -> None:
    async with ReplyReceiver() as elsewhere:
        told = f"HTTP/1.1 {status} Over there\r\nlocation: {elsewhere.url}\r\ncontent-length: 0\r\n\r\n"
        async with answering(lambda writer: writer.write(told.encode())) as host, pushing(host) as channel:
            result = await channel.send(reply_to(f"http://{host}/"))
    assert result.outcome is Delivered.DEAD
    assert "redirects" in result.detail
    assert elsewhere.connections == 0


# What is in doubt


async def test_a_reset_after_accepting_is_a_doubt() -> None:
    result, receiver = await tried(ACCEPT_THEN_RESET)
    assert result.outcome is Delivered.DOUBT
    assert len(receiver.accepted) == 1


def test_a_hang_is_a_doubt_after_the_time_limit() -> None:
    async def hang(loop: MovedLoop) -> None:
        reached = asyncio.Event()
        async with answering(lambda _: reached.set()) as host, pushing(host, LONG_S) as channel:
            sending = asyncio.create_task(channel.send(reply_to(f"http://{host}/")))
            await reached.wait()
            assert not sending.done()
            loop.skip(LONG_S)
            assert (await sending).outcome is Delivered.DOUBT

    on_moved_loop(hang)


async def test_a_drop_may_have_been_read() -> None:
    result, receiver = await tried(DROP)
    assert result.outcome is Delivered.DOUBT
    assert receiver.accepted == []


@pytest.mark.parametrize("told", [b"", b"HTTP/1.1 2", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nx"])
async def test_no_readable_status_is_a_doubt(told: bytes) -> None:
    def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(told)
        writer.close()

    async with answering(answer) as host, pushing(host) as channel:
        assert (await channel.send(reply_to(f"http://{host}/"))).outcome is Delivered.DOUBT


def _begins(writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 201 Created\r\ncontent-length: 99\r\n\r\n{"id"')


async def test_the_status_counts_even_if_the_body_is_cut() -> None:
    def answer(writer: asyncio.StreamWriter) -> None:
        _begins(writer)
        writer.close()

    async with answering(answer) as host, pushing(host) as channel:
        assert await channel.send(reply_to(f"http://{host}/")) == SendResult(Delivered.CONFIRMED)


def test_the_status_counts_even_if_the_body_never_ends() -> None:
    async def stall(loop: MovedLoop) -> None:
        async def is_over(_: httpx2.Response) -> None:
            loop.skip(LONG_S)

        def make() -> httpx2.AsyncClient:
            return httpx2.AsyncClient(trust_env=False, event_hooks={"response": [is_over]})

        async with answering(_begins) as host:
            channel = PushChannel("http", [host], LONG_S, make)
            assert await channel.send(reply_to(f"http://{host}/")) == SendResult(Delivered.CONFIRMED)
            await channel.close()

    on_moved_loop(stall)


# What was not sent


async def test_a_refused_connection_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host = f"127.0.0.1:{taken.getsockname()[1]}"
    async with pushing(host) as channel:
        result = await channel.send(reply_to(f"http://{host}/replies?token=secret"))
    assert result.outcome is Delivered.RETRY
    assert "secret" not in result.detail


async def test_an_unknown_name_is_tried_again() -> None:
    async with pushing("receiver.invalid") as channel:
        assert (await channel.send(reply_to("http://receiver.invalid/"))).outcome is Delivered.RETRY


async def test_a_connection_that_is_never_secured_is_tried_again() -> None:
    async with ReplyReceiver(scripted(HANG)) as receiver, pushing(receiver.host, SHORT_S) as channel:
        result = await channel.send(reply_to(f"https://{receiver.host}/"))
    assert result.outcome is Delivered.RETRY


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (httpx2.ConnectError("no route"), Delivered.RETRY),
        (httpx2.ConnectTimeout(""), Delivered.RETRY),
        (httpx2.PoolTimeout(""), Delivered.RETRY),
        (httpx2.UnsupportedProtocol("gopher"), Delivered.DEAD),
        (httpx2.InvalidURL("what"), Delivered.DEAD),
        (RuntimeError("the client has been closed"), Delivered.RETRY),
        (OSError("too many open files"), Delivered.RETRY),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_errors_before_sending(error: Exception, outcome: Delivered) -> None:
    def fail(request: httpx2.Request) -> httpx2.Response:
        raise error

    channel = PushChannel(
        "http", ["example.com"], 1.0, lambda: httpx2.AsyncClient(transport=httpx2.MockTransport(fail))
    )
    result = await channel.send(reply_to("https://example.com/"))
    assert result.outcome is outcome
    await channel.close()


# Where it does not go


async def test_a_host_that_is_not_listed_is_never_called() -> None:
    async with ReplyReceiver() as receiver, pushing("example.com") as channel:
        result = await channel.send(reply_to(receiver.url))
    assert result.outcome is Delivered.REFUSED
    assert "allowed hosts" in result.detail
    assert receiver.connections == 0


async def test_a_reply_without_a_url_is_refused() -> None:
    async with pushing("example.com") as channel:
        assert (await channel.send(reply_to(None))).outcome is Delivered.REFUSED


# The channels themselves


async def test_pulled_replies_are_never_pushed() -> None:
    channel: Channel = PullChannel("http")
    assert (channel.name, channel.sending) == ("http", Sending.PULL)
    assert (await channel.send(reply_to("https://example.com/"))).outcome is Delivered.REFUSED
    await channel.close()


async def test_one_client_opened_lazily_and_again_after_closing() -> None:
    made: list[httpx2.AsyncClient] = []

    def make() -> httpx2.AsyncClient:
        made.append(httpx2.AsyncClient(trust_env=False))
        return made[-1]

    async with ReplyReceiver() as receiver:
        push = PushChannel("mine", [receiver.host], client=make)
        channel: Channel = push
        assert (channel.name, channel.sending) == ("mine", Sending.PULL)
        await push.close()
        assert made == []
        sent = [await push.send(reply_to(receiver.url)) for _ in range(3)]
        assert len(made) == 1
        await push.close()
        assert made[0].is_closed
        sent.append(await push.send(reply_to(receiver.url)))
        await push.close()
    assert {result.outcome for result in sent} == {Delivered.CONFIRMED}
    assert [client.is_closed for client in made] == [True, True]


async def test_closing_while_sending_settles_the_try() -> None:
    reached = asyncio.Event()

    def stall(writer: asyncio.StreamWriter) -> None:
        reached.set()

    async with answering(stall) as host:
        channel = PushChannel("http", [host], 1.0)
        sending = asyncio.create_task(channel.send(reply_to(f"http://{host}/")))
        await reached.wait()
        await channel.close()
        assert (await sending).outcome is Delivered.DOUBT


async def test_a_seeded_receiver_takes_every_reply_in_the_end(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    outcomes = set()
    async with ReplyReceiver(seeded(5, 0.7), ledger=ledger) as receiver, pushing(receiver.host, 2 * SHORT_S) as channel:
        for number in range(1, 21):
            reply = StoredReply(number, LANE, None, "sending", ReplyDraft(number, "hello", url=receiver.url))
            while (result := await channel.send(reply)).outcome is not Delivered.CONFIRMED:
                outcomes.add(result.outcome)
                doubt = reply.possible_duplicate or result.outcome is Delivered.DOUBT
                reply = replace(reply, possible_duplicate=doubt)
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert [line["json"] for line in lines] == [posted.json for posted in receiver.accepted]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert outcomes == {Delivered.DOUBT, Delivered.RETRY}
    keys: set[str] = set()
    for posted in receiver.accepted:
        assert posted.possible_duplicate or posted.key not in keys
        keys.add(posted.key)
    assert keys == {f"keepsaid-{number:x}" for number in range(1, 21)}
