"""The outside world, each part a process of its own: a model that takes its time, a customer who misbehaves.

`python -m tests.crash.cast model --seed 1`, `python -m tests.crash.cast receiver --seed 1 --ledger FILE`: one line
of JSON on stdout tells the URL once it listens; SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from keepsaid.testing.model_http import Connection
from keepsaid.testing.model_script import UNAVAILABLE, ChatRequest, Reactor, Say
from keepsaid.testing.model_script import Reaction as Answering
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.reply_receiver import Act, Reaction, ReplyReceiver, seeded

_OUTAGES = 0.02
_THINKING_S = (0.01, 0.35)
_TROUBLE = 0.2
_HANG_S = 0.4


def slow_echo(seed: int) -> Reactor:
    """Repeat all that was said last, after a while, so that a kill finds turns under way; fail now and then."""

    def react(request: ChatRequest) -> Answering:
        chance = random.Random(f"model:{seed}:{request.number}")
        if chance.random() < _OUTAGES:
            return UNAVAILABLE
        return Say(f"You said: {request.last('user')}", delay_s=chance.uniform(*_THINKING_S), chunk=4_096)

    return react


class Impatient(ReplyReceiver):
    """A receiver that hangs for a moment only and then hangs up, so that a test can wait for it."""

    async def _serve(self, connection: Connection, reaction: Reaction) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_HANG_S if reaction.act is Act.HANG else None):
                await super()._serve(connection, reaction)


async def _run(server: ModelServer | ReplyReceiver) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with server:
        sys.stdout.write(json.dumps({"url": server.url}) + "\n")
        sys.stdout.flush()
        await stop.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Play one part until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.cast", description=main.__doc__)
    parser.add_argument("part", choices=("model", "receiver"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ledger", type=Path, help="where the receiver writes what it accepts")
    options = parser.parse_args(arguments)
    if options.part == "model":
        asyncio.run(_run(ModelServer(slow_echo(options.seed))))
    else:
        asyncio.run(_run(Impatient(seeded(options.seed, _TROUBLE), ledger=options.ledger)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
