"""The load: people and GitHub, who repeat messages until they are acknowledged, and write down the answers.

`python -m keepsaid_testkit.crash.load --home DIR --ledger FILE --reply-url URL --closed-url URL --seed N [--data DIR]`
sends until SIGTERM, then ends what it began; at SIGUSR1 a crowd speaks up at once, at SIGTSTP all fall silent until
SIGCONT. `--data` is also sent whole: LoCoMo's first conversations and GitHub's real payloads. The owner sits beside it:
what died is queued again once, replies are pulled, dead ones given up.

Each line of the ledger is one answer, flushed as it comes. `taken`: key, id and, for talk, place and number; `after`
is how many `taken` lines there were when it was first sent. `refused`: a forged delivery was not taken. `strange`:
any other answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2

from keepsaid.testing.webhooks import deliveries
from keepsaid.values import frozen
from keepsaid_testkit.crash.load_requests import (
    MANY,
    SECRET,
    ReplyUrls,
    RetriedCall,
    chats,
    hooks,
    locomo,
    payloads,
    talk,
    troubles,
)
from keepsaid_testkit.crash.owner import OwnerClient

_TALKERS = 3
_RETRY_S = 0.03
_OWNER_S = 0.1
_CROWD = 12
_CROWD_SAYS = 120
"""How many people a burst is of, and how much they say together."""


class Ledger:
    """What was answered, line by line, on disk as soon as it is known."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self.taken = 0

    def write(self, what: str, **fields: Any) -> None:
        """Add a line."""
        self.taken += what == "taken"
        self._file.write(json.dumps({"what": what, **fields}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Caller:
    """Calls the server wherever it listens now, and does not give up before somebody answers."""

    def __init__(self, home: Path, ledger: Ledger, client: httpx2.AsyncClient) -> None:
        self._runtime = home / "run" / "runtime.json"
        self._ledger = ledger
        self._client = client

    async def call(self, call: RetriedCall) -> None:
        """Make a call until it is answered, and write down the answer."""
        after = self._ledger.taken
        while (response := await self._tried(call)) is None or response.status_code >= 500:
            await pause(_RETRY_S)
        told = {**call.told, "status": response.status_code}
        if response.is_success:
            self._ledger.write("taken", **told, after=after, **response.json())
        else:
            what = "refused" if response.status_code == 401 else "strange"
            self._ledger.write(what, **told, answer=response.text)

    async def _tried(self, call: RetriedCall) -> httpx2.Response | None:
        try:
            url = json.loads(self._runtime.read_text("utf-8"))["url"]
            return await self._client.post(f"{url}{call.path}", content=call.body, headers=dict(call.headers))
        except (FileNotFoundError, httpx2.TransportError):
            return None


async def pause(seconds: float, stop: asyncio.Event | None = None) -> None:
    """Wait, but not beyond a stop."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await (stop or asyncio.Event()).wait()


@frozen
class Pace:
    """Pauses in seconds, none in a burst; `repeats` is the share sent twice, half of it at once."""

    seed: int
    pause_s: float
    repeats: float = 0.0


async def send(caller: Caller, calls: Iterator[RetriedCall], pace: Pace, stop: asyncio.Event) -> None:
    """Make the calls one after another, some of them twice, until they end or a stop."""
    chance = random.Random(f"pace:{pace.seed}")  # noqa: S311 - repeatable, not secret
    while True:
        call = next(calls, None)
        if call is None or stop.is_set():
            return
        fate = chance.random()
        if fate < pace.repeats / 2:
            await asyncio.gather(caller.call(call), caller.call(call))
        else:
            await caller.call(call)
        if pace.repeats / 2 < fate < pace.repeats:
            await caller.call(call)
        if chance.random() < 0.7:
            await pause(chance.uniform(0, 2 * pace.pause_s), stop)


async def run(options: argparse.Namespace) -> None:
    """All senders at once."""
    stop, never = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGTSTP, os.kill, os.getpid(), signal.SIGSTOP)  # never while it reads a store
    with suppress(PermissionError):  # stdin is not a pipe
        loop.add_reader(sys.stdin.fileno(), os._exit, 1)  # nobody is left to wait for what was begun
    ledger = Ledger(options.ledger)
    doors, seed, pause_s = ReplyUrls(options.reply_url, options.closed_url), options.seed, options.pause
    async with httpx2.AsyncClient(trust_env=False, timeout=20.0) as client, asyncio.TaskGroup() as senders:
        caller = Caller(options.home, ledger, client)
        crowd = talk(100 * seed + _TALKERS, doors)

        def burst() -> None:
            if stop.is_set():
                return
            said = islice(crowd, _CROWD_SAYS)
            for number in range(_CROWD):
                senders.create_task(send(caller, said, Pace(20 + number, 0.0), stop))

        loop.add_signal_handler(signal.SIGUSR1, burst)
        for talker in range(_TALKERS):
            said = talk(100 * seed + talker, doors)
            senders.create_task(send(caller, said, Pace(talker, pause_s, repeats=0.12), stop))
        senders.create_task(send(caller, troubles(seed, doors), Pace(9, pause_s), stop))
        senders.create_task(send(caller, chats(seed, doors), Pace(13, pause_s, repeats=0.1), stop))
        senders.create_task(send(caller, hooks(deliveries(seed, MANY, SECRET)), Pace(10, pause_s), stop))
        senders.create_task(_look_after(OwnerClient(options.home, client), stop))
        if options.data is not None:
            told = locomo(options.data / "locomo" / "locomo10.json", doors)
            senders.create_task(send(caller, told, Pace(11, 0.015, repeats=0.02), never))
            real = hooks(payloads(options.data / "github-webhooks"))
            senders.create_task(send(caller, real, Pace(12, 0.2), never))
    ledger.close()


async def _look_after(owner: OwnerClient, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await owner.look()
        await pause(_OWNER_S, stop)


def main(arguments: Sequence[str] | None = None) -> int:
    """Send until SIGTERM, then end what was begun."""
    parser = argparse.ArgumentParser(prog="python -m keepsaid_testkit.crash.load", description=main.__doc__)
    parser.add_argument("--home", type=Path, required=True, help="KEEPSAID_HOME of the server")
    parser.add_argument("--ledger", type=Path, required=True, help="a file that gets one JSON line for each answer")
    parser.add_argument("--reply-url", required=True, help="where replies are to be pushed")
    parser.add_argument("--closed-url", required=True, help="where nobody takes them")
    parser.add_argument("--pause", type=float, default=0.12, help="seconds between messages of one sender")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="a folder with locomo/ and github-webhooks/")
    asyncio.run(run(parser.parse_args(arguments)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
