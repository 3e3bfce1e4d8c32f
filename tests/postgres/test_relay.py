"""Redis between processes that share a database: off, slow, emptied or lying, it changes no result."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.acceptance.program import Program
from tests.postgres.redis_server import Answer, RealRedis, lying_redis, real_redis
from tests.postgres.server import empty
from tests.postgres.test_peers import Process
from tests.postgres.test_processes import Fleet, said
from tests.waits import HANG_S

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.postgres.peers import PostgresPeers
from keepsaid.adapters.redis.relay import RedisRelay
from keepsaid.errors import ConfigError


@pytest.fixture(autouse=True)
def _empty(place: PostgresPlace) -> None:
    empty(place)


@pytest.fixture
def server() -> Iterator[RealRedis]:
    with real_redis() as running:
        yield running


@asynccontextmanager
async def relayed(place: PostgresPlace, url: str) -> AsyncIterator[tuple[Process, Process]]:
    """Two processes that have a relay; both were woken when they had begun to listen, and wait again."""
    peers = [await asyncio.to_thread(PostgresPeers, place, RedisRelay(url)) for _ in range(2)]
    try:
        async with asyncio.timeout(HANG_S):
            yield Process(peers[0]), Process(peers[1])
    finally:
        for one in peers:
            await one.close()


async def met(*processes: Process) -> None:
    """Wait until each listens, which wakes it, and let it wait again."""
    for one in processes:
        await one.route.wait()
        one.route.clear()
        one.work.clear()


async def woken(one: Process, other: Process) -> None:
    """What the one wakes is woken in the other, and nothing else is."""
    other.work.clear()
    one.work.set()
    await other.work.wait()
    other.lost.clear()
    one.held.wake(7)
    await other.lost.wait()


async def test_wake_ups_go_by_redis(place: PostgresPlace, server: RealRedis) -> None:
    async with relayed(place, server.url) as (one, two):
        await met(one, two)
        before = server.published()
        await woken(one, two)
        await woken(two, one)
        assert server.published() >= before + 4
        assert not two.route.is_set()


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
async def test_without_an_answer_they_go_by_the_database(
    place: PostgresPlace, server: RealRedis, number: signal.Signals
) -> None:
    async with relayed(place, server.url) as (one, two):
        await met(one, two)
        server.send(number)
        await woken(one, two)
        await woken(two, one)
        if number == signal.SIGKILL:
            server.start()
            await met(one, two)  # the line is there again, and what was missed is looked for
        else:
            server.send(signal.SIGCONT)
        await woken(one, two)


async def test_emptied_it_has_lost_nothing(place: PostgresPlace, server: RealRedis) -> None:
    async with relayed(place, server.url) as (one, two):
        await met(one, two)
        server.flush()
        await woken(one, two)


def _hello(words: Sequence[bytes]) -> bytes | None:
    """What every server says to a client that comes."""
    if words[0].upper() == b"HELLO":
        return b"%1\r\n$5\r\nproto\r\n:3\r\n"
    return b"+OK\r\n" if words[0].upper() == b"CLIENT" else None


def _push(channel: bytes, told: bytes) -> bytes:
    return b">3\r\n$7\r\nmessage\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(channel), channel, len(told), told)


def mute(words: Sequence[bytes]) -> bytes:
    """Takes what is published, says that many heard it, and tells nobody."""
    if (hello := _hello(words)) is not None:
        return hello
    if words[0].upper() == b"SUBSCRIBE":
        return b">3\r\n$9\r\nsubscribe\r\n$%d\r\n%b\r\n:1\r\n" % (len(words[1]), words[1])
    return b":99\r\n"


def inventor(words: Sequence[bytes]) -> bytes:
    """Tells what nobody has published, again and again."""
    said = mute(words)
    if words[0].upper() == b"SUBSCRIBE":
        for made_up in (
            b"x route,unheard,held:8,held:x,held:,:7,held:" + b"9" * 40,
            b"\xff\x00",
            b"",
            b"x " + b"work," * 900,
        ):
            said += 50 * _push(words[1], made_up)
    return said


def noise(words: Sequence[bytes]) -> bytes:
    """Says what no server says."""
    return _hello(words) or b"!\r\n$-7\r\n*x\r\n\x00"


def silence(words: Sequence[bytes]) -> bytes:
    """Says nothing at all."""
    del words
    return b""


@pytest.mark.parametrize("answer", [noise, silence])
async def test_whatever_it_says_wake_ups_arrive(place: PostgresPlace, answer: Answer) -> None:
    with lying_redis(answer) as url:
        async with relayed(place, url) as (one, two):
            await woken(one, two)
            await woken(two, one)


async def test_made_up_wake_ups_wake_who_is_named_and_nobody_else(place: PostgresPlace) -> None:
    with lying_redis(inventor) as url:
        async with relayed(place, url) as (one, two):
            two.held[8] = [(named := asyncio.Event())]
            await two.route.wait()
            await named.wait()
            assert not two.lost.is_set()
            assert one.peers.node != two.peers.node


@pytest.mark.parametrize("answer", [mute, inventor])
def test_processes_between_which_redis_lies_answer_all_the_same(
    place: PostgresPlace, tmp_path: Path, answer: Answer
) -> None:
    """A door takes in what a worker answers, though nobody tells it; one is killed, and the others go on."""
    with lying_redis(answer) as url, Fleet(place, tmp_path, "door", "worker", "all", redis=url) as fleet:
        assert fleet.leader(of=3) == 2
        for n in range(3):
            story = fleet.say(0, f"is anybody there? {n}")
            assert (story["state"], len(story["replies"])) == ("done", 1)
        fleet.running[2].process.kill()
        assert fleet.say(0, "and now?")["state"] == "done"
        assert set(said(fleet).values()) == {"done"}


def test_doctor_says_whether_redis_answers(place: PostgresPlace, tmp_path: Path, server: RealRedis) -> None:
    variables = {"KEEPSAID_STORE__URL": place.url, "KEEPSAID_STORE__REDIS": server.url}
    home = Program(tmp_path / "home", variables)
    home.configure("models: {chat: none}\n")
    home.run("memory", "add", "My desk is blue")
    assert "carries wake-ups" in home.run("doctor", code=None).out
    server.send(signal.SIGKILL)
    assert "does not answer" in home.run("doctor", code=None).out


def test_the_url_of_something_else_is_refused(tmp_path: Path) -> None:
    home = Program(tmp_path / "home", {"KEEPSAID_STORE__REDIS": "http://ann:hunter2@example.org"})
    refused = home.run("status", code=None)
    assert "it must begin with redis://" in refused.err
    assert "hunter2" not in refused.err
    with pytest.raises(ConfigError, match=r"store\.redis cannot be read"):
        RedisRelay("redis://example.org:port/0")
