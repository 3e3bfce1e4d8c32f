"""The reply receiver: as bad as its seed says, and honest in its ledger."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import httpx2
import pytest

import keepsaid.testing
from keepsaid.testing.reply_receiver import ACCEPT, Act, ReplyReceiver, refuse, scripted, seeded


def test_a_seed_decides_every_reaction() -> None:
    first, again, other = ([seeded(seed)(n) for n in range(200)] for seed in (1, 1, 2))
    assert first == again != other
    assert {reaction.act for reaction in first} == set(Act)
    assert {seeded(1, 0.0)(n) for n in range(50)} == {ACCEPT}


async def test_what_is_no_reply_is_not_accepted() -> None:
    async with ReplyReceiver() as receiver, httpx2.AsyncClient(trust_env=False) as client:
        bodies = [b"", b"{", b"[]", b"\xff"]
        statuses = [(await client.post(receiver.url, content=body)).status_code for body in bodies]
        statuses.append((await client.get(receiver.url)).status_code)
    assert statuses == [400, 400, 400, 400, 405]
    assert receiver.accepted == []


async def test_it_runs_as_a_process_and_its_ledger_outlives_it(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    arguments = ["-m", "keepsaid.testing.reply_receiver", "--ledger", str(ledger)]
    source = str(Path(keepsaid.testing.__file__).parents[2])
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": source}
    )
    assert process.stdout is not None
    url = str(json.loads(await process.stdout.readline())["url"])
    async with httpx2.AsyncClient(trust_env=False) as client:
        headers = {"Idempotency-Key": "k-1", "Keepsaid-Possible-Duplicate": "true"}
        assert (await client.post(url, json={"text": "ü"}, headers=headers)).json() == {"id": "post-1"}
    process.kill()
    await process.wait()
    (line,) = ledger.read_text().splitlines()
    told = json.loads(line)
    assert (told["number"], told["path"], told["json"]) == (1, "/replies", {"text": "ü"})
    assert told["headers"]["idempotency-key"] == "k-1"


async def test_it_waits_for_posts() -> None:
    async with ReplyReceiver(scripted(refuse(503, "2"))) as receiver, httpx2.AsyncClient(trust_env=False) as client:
        assert (await client.post(receiver.url, json={})).headers["retry-after"] == "2"
        waiting = asyncio.create_task(receiver.wait_for(1))
        await client.post(receiver.url, json={"text": "hello"}, headers={"Keepsaid-Possible-Duplicate": "true"})
        (posted,) = await waiting
        with pytest.raises(TimeoutError):
            await receiver.wait_for(2, 0.01)
    assert (posted.json, posted.key, posted.possible_duplicate) == ({"text": "hello"}, "", True)
