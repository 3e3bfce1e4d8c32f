"""The load: people and GitHub, who repeat themselves until they are heard, and write down what they were told.

`python -m tests.crash.load --home DIR --ledger FILE --reply-url URL --seed N [--data DIR]` sends until SIGTERM, then
ends what it began. `--data` is also sent whole: LoCoMo's first conversations and GitHub's real payloads.

Each line of the ledger is one answer, flushed as it comes. `taken`: key, id and, for talk, place and number; `after`
is how many `taken` lines there were when it was first sent. `refused`: a forged delivery was not taken. `strange`:
any other answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import httpx2

from keepsaid.testing.talk import conversations
from keepsaid.testing.webhooks import Delivery, deliveries, sign

SECRET = "no secret at all"  # gitleaks:allow
_MANY = 1_000_000
_TALKERS = 3
_RETRY_S = 0.03
_LOCOMO_CONVERSATIONS = 1


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


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is made until it is answered; `told` is what the ledger is to say of it."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    told: Mapping[str, Any]


class Caller:
    """Calls the server wherever it listens now, and does not give up before somebody answers."""

    def __init__(self, home: Path, ledger: Ledger, client: httpx2.AsyncClient) -> None:
        self._runtime = home / "run" / "runtime.json"
        self._ledger = ledger
        self._client = client

    async def call(self, call: Call) -> None:
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

    async def _tried(self, call: Call) -> httpx2.Response | None:
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


def talk(seed: int, reply_url: str) -> Iterator[Call]:
    """What people say: several rooms, some with a topic beside the root lane; most want the reply pushed."""
    chance = random.Random(f"talk:{seed}")
    for said in conversations(seed, _MANY):
        fields = {"sender": said.sender, "name": said.name, "conversation": said.conversation}
        fields["text"] = f"{said.text} ({said.external_id})"
        if chance.random() < 0.25:
            fields["topic"] = chance.choice(("plans", "gossip"))
        if chance.random() < 0.9:
            fields["reply_url"] = reply_url
        yield message(said.external_id, fields)


def message(key: str, fields: Mapping[str, str]) -> Call:
    """A message under its key."""
    headers = {"content-type": "application/json", "idempotency-key": key}
    told = {"kind": "talk", "key": key, "text": fields["text"]}
    return Call("/v1/messages", headers, json.dumps(fields).encode(), told)


def hooks(given: Iterable[Delivery]) -> Iterator[Call]:
    """GitHub's deliveries, the forged ones too."""
    for delivery in given:
        told = {"kind": "hook", "key": delivery.id, "event": delivery.event, "forged": delivery.forged}
        yield Call("/hooks/github", delivery.headers, delivery.body, told)


def locomo(file: Path, reply_url: str) -> Iterator[Call]:
    """The first conversations of LoCoMo, one message for each time somebody speaks."""
    for sample in json.loads(file.read_text("utf-8"))[:_LOCOMO_CONVERSATIONS]:
        talked, name = sample["conversation"], sample["sample_id"]
        sessions = (talked.get(f"session_{number}", ()) for number in range(1, 100))
        for turn in (turn for session in sessions for turn in session if turn["text"].strip()):
            fields = {"sender": turn["speaker"], "conversation": f"locomo:{name}", "text": turn["text"]}
            yield message(f"{name}/{turn['dia_id']}", fields | {"reply_url": reply_url})


def payloads(folder: Path) -> Iterator[Delivery]:
    """Every real payload, signed; the folder's name is the event."""
    for file in sorted(folder.glob("*/*.json")):
        body = file.read_bytes()
        name = blake2b(str(file.relative_to(folder)).encode(), digest_size=16).hexdigest()
        headers = {"content-type": "application/json", "x-github-event": file.parent.name, "x-github-delivery": name}
        yield Delivery(headers | {"x-hub-signature-256": sign(SECRET, body)}, body)


@dataclass(frozen=True, slots=True)
class Pace:
    """Pauses in seconds, none in a burst; `repeats` is the share sent twice, half of it at once."""

    seed: int
    pause_s: float
    repeats: float = 0.0


async def send(caller: Caller, calls: Iterator[Call], pace: Pace, stop: asyncio.Event) -> None:
    """Make the calls one after another, some of them twice, until they end or a stop."""
    chance = random.Random(f"pace:{pace.seed}")
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
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    ledger = Ledger(options.ledger)
    url, seed = options.reply_url, options.seed
    async with httpx2.AsyncClient(trust_env=False, timeout=20.0) as client, asyncio.TaskGroup() as senders:
        caller = Caller(options.home, ledger, client)
        for talker in range(_TALKERS):
            said = talk(100 * seed + talker, url)
            senders.create_task(send(caller, said, Pace(talker, 0.12, repeats=0.12), stop))
        senders.create_task(send(caller, hooks(deliveries(seed, _MANY, SECRET)), Pace(10, 0.12), stop))
        if options.data is not None:
            told = locomo(options.data / "locomo" / "locomo10.json", url)
            senders.create_task(send(caller, told, Pace(11, 0.015, repeats=0.02), never))
            real = hooks(payloads(options.data / "github-webhooks"))
            senders.create_task(send(caller, real, Pace(12, 0.2), never))
    ledger.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Send until SIGTERM, then end what was begun."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.load", description=main.__doc__)
    parser.add_argument("--home", type=Path, required=True, help="KEEPSAID_HOME of the server")
    parser.add_argument("--ledger", type=Path, required=True, help="a file that gets one JSON line for each answer")
    parser.add_argument("--reply-url", required=True, help="where replies are to be pushed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="a folder with locomo/ and github-webhooks/")
    asyncio.run(run(parser.parse_args(arguments)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
