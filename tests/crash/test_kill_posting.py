"""Posting: the runtime is killed again and again while clients post messages with files, and post them again."""

from __future__ import annotations

import asyncio
import json
import random
from asyncio.subprocess import Process
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest
from tests.acceptance.program import WITHIN_S, Program
from tests.crash.test_kill_messengers import let, serving
from tests.figures import Figures

from keepsaid.config import Home

_KILLS, _SOAK_KILLS = 2, 100
_CLIENTS, _EACH = 3, 3
_PIECES = (10, 300_000, 2_000_000)
"""Bytes of the files of a message: of one piece in the store, of two and of eight."""

_AWAITED = "SELECT count(*) FROM file WHERE ref = 'awaited'"

_UNSETTLED = "SELECT count(*) FROM file WHERE state = 'waiting'"


def contents_of(key: str) -> list[bytes]:
    """The files of a message."""
    chance = random.Random(key)
    return [key.encode() + b"\0" + chance.randbytes(size) for size in _PIECES[: 1 + len(key) % len(_PIECES)]]


class Clients:
    """Clients that post one message after the other, each under its key until it is acknowledged."""

    def __init__(self) -> None:
        self.url = ""
        self.up = asyncio.Event()
        self.answered: dict[str, dict[str, Any]] = {}
        self.retries = 0

    async def begin(self, process: Process, home: Home) -> None:
        """Post to a runtime, once it listens."""
        await until(process, lambda: bool(address(home, process)))
        self.url = address(home, process)
        self.up.set()

    def has(self, count: int) -> bool:
        """Whether so many messages are acknowledged."""
        return len(self.answered) >= count

    async def post(self, name: str, count: int) -> None:
        """Post so many messages; fails where one is refused."""
        for n in range(count):
            key = f"{name}-{'x' * (n % 3)}-{n}"
            files = [{"name": f"{n}.bin", "content": b64encode(one).decode()} for one in contents_of(key)]
            body = {"text": f"parcel {key}", "sender": name, "conversation": name, "files": files}
            while key not in self.answered:
                await self.up.wait()
                with suppress(httpx2.TransportError):
                    await self._try(key, json.dumps(body).encode())

    async def _try(self, key: str, body: bytes) -> None:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        async with httpx2.AsyncClient(trust_env=False, timeout=WITHIN_S) as client:
            answer = await client.post(f"{self.url}/v1/messages", content=body, headers=headers)
        assert answer.status_code in (200, 201, 503), answer.text
        if answer.status_code != 503:
            self.answered[key] = answer.json()
            self.retries += answer.status_code == 200


async def until(process: Process, done: Callable[[], bool]) -> None:
    """Wait until something is so, while a runtime runs."""
    async with asyncio.timeout(WITHIN_S):
        while not done():
            await let(process)


def address(home: Home, process: Process) -> str:
    """Where a runtime listens, once it does; "" before."""
    try:
        told = json.loads(home.runtime_file.read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    return str(told["url"]) if told["pid"] == process.pid else ""


def rows(home: Home, sql: str) -> list[tuple[Any, ...]]:
    """What is on disk."""
    with closing(apsw.Connection(str(home.store("buffer.db")), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        db.set_busy_timeout(60_000)
        return list(db.execute(sql))


def cut_off(home: Home) -> bool:
    """Whether the bytes of a file are being written: a kill now cuts them off, most likely."""
    return rows(home, _AWAITED) != [(0,)]


def wrong_in(home: Home, clients: Clients) -> list[str]:
    """What is wrong in the store: a message that is missing or there twice, a file that is not whole."""
    stored = [str(text).removeprefix("parcel ") for (text,) in rows(home, "SELECT text FROM message")]
    wrong = [] if sorted(stored) == sorted(clients.answered) else [f"stored {sorted(stored)}"]
    ids = {str(text).removeprefix("parcel "): number for number, text in rows(home, "SELECT id, text FROM message")}
    for key, number in ids.items():
        states = rows(home, f"SELECT state FROM file WHERE message_id = {number} ORDER BY n")
        kept = []
        for n in range(1, len(states) + 1):
            pieces = rows(
                home, f"SELECT content FROM file_piece WHERE message_id = {number} AND n = {n} ORDER BY piece"
            )
            kept.append(b"".join(piece for (piece,) in pieces))
        if {state for (state,) in states} != {"kept"} or kept != contents_of(key):
            wrong.append(f"{key}: {states}, {[len(one) for one in kept]} bytes")
    return wrong


async def killed(folder: Path, kills: int, seed: int) -> tuple[list[str], dict[str, int]]:
    """What is wrong after so many kills, and what was counted."""
    chance, home, program = random.Random(seed), Home.at(folder), Program(folder)
    program.configure("models: {chat: none}\nbuffer: {window_ms: 0}\n")
    clients, count = Clients(), _EACH * (kills + 1)
    posting = asyncio.gather(*(clients.post(f"client{n}", count) for n in range(_CLIENTS)))
    try:
        for _ in range(kills):
            async with serving(program) as process:
                await clients.begin(process, home)
                wanted = len(clients.answered) + chance.randint(0, _CLIENTS * _EACH - 1)
                await until(process, partial(clients.has, wanted))
                await until(process, lambda: posting.done() or cut_off(home))
                clients.up.clear()
        async with serving(program) as process:
            await clients.begin(process, home)
            await until(process, posting.done)
            await posting
            await until(process, lambda: rows(home, _UNSETTLED) == [(0,)])
        counts = {"posted": len(clients.answered), "duplicates": clients.retries}
        return wrong_in(home, clients), counts
    finally:
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)


async def test_what_was_acknowledged_has_its_files_through_kills(tmp_path: Path) -> None:
    """Every message once, each file with all of its bytes."""
    wrong, counts = await killed(tmp_path, _KILLS, seed=1)
    assert wrong == []
    assert counts["posted"] == _CLIENTS * _EACH * (_KILLS + 1)


@pytest.mark.soak
async def test_what_was_acknowledged_has_its_files_through_many_kills(tmp_path: Path, figures: Figures) -> None:
    wrong, counts = await killed(tmp_path, _SOAK_KILLS, seed=2)
    figures(**counts)
    assert wrong == []
    assert counts["duplicates"] > 0
