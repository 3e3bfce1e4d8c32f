"""The outside world, each part a process of its own: a model that takes its time, a customer who misbehaves.

`python -m keepsaid_testkit.crash.world model --seed 1`, `... receiver --seed 1 --ledger FILE`: one line of JSON on
stdout tells the URL once it listens; SIGTERM or the end of stdin ends it. The model does what the last thing said
asks of it: `[once:K]`, `[same:K]` and `[mine:K]` call a tool with a key, `[search]` searches memory, `[ask:K]` asks
for a number, `[slow]` takes longer, `[refuse]` is refused, `[flaky:K]` meets an outage once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from keepsaid.adapters.models.extractor import MARK_DONE, SAVE_FACTS
from keepsaid.adapters.models.memory_calls import SUMMARY_TOOL
from keepsaid.domain.context import HEADINGS
from keepsaid.pipeline.tools.conversation import ASK_FOR
from keepsaid.pipeline.turn.worker import SET_STATUS
from keepsaid.testing.model_http import Connection
from keepsaid.testing.model_script import UNAVAILABLE, Call, ChatRequest, Reactor, Refuse, Say, text_of
from keepsaid.testing.model_script import Reaction as Answering
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.reply_receiver import Act, ReceiverReaction, ReplyReceiver, refuse, seeded

_OUTAGES = 0.02
_POOR_SUMMARIES = 0.3
_HANG_S = 0.4
_SLOW_S = 0.25
_POOR_FACTS = 0.4
_NUMBERED = re.compile(r"^#(\d+) ", re.MULTILINE)
_RECALLED = "[Context from memory"
_DATA = re.compile(r"\[Data (\w+):.*?\[End of data \1\]", re.DOTALL)
"""Text marked as data for a worker requests nothing."""

_ASKED = re.compile(r"\[(once|same|mine|search|ask|slow|refuse|flaky)(?::([^\]\s]+))?\]")


def scripted(seed: int, thinking_s: float) -> Reactor:
    """Do what is asked, repeat all that was said to this turn, after a while; fail now and then."""

    met: set[str] = set()

    def react(request: ChatRequest) -> Answering:
        chance = random.Random(f"model:{seed}:{request.number}")  # noqa: S311 - repeatable, not secret
        if SUMMARY_TOOL in request.tool_names:
            return _summary(chance, thinking_s)
        if SAVE_FACTS in request.tool_names:
            return _facts(request, chance, thinking_s)
        turn = _turn(request)
        said = "\n".join(text_of(one) for one in turn if one.get("role") == "user")
        asked = _ASKED.findall(_DATA.sub("", said))
        if ("refuse", "") in asked:
            return Refuse(401, "invalid_api_key", "The scripted model refuses this.")
        flaky = {key for name, key in asked if name == "flaky"} - met
        met.update(flaky)
        if flaky or chance.random() < _OUTAGES:
            return UNAVAILABLE
        delay_s = _SLOW_S if ("slow", "") in asked else chance.uniform(0, thinking_s)
        calls = [_call(name, key) for name, key in asked if name not in ("slow", "flaky")]
        if SET_STATUS in request.tool_names:
            calls = [Call(SET_STATUS, {"text": "on it"}), *(one for one in calls if one.name in request.tool_names)]
        done = [one.get("role") for one in turn].count("tool")
        if done < len(calls):
            return calls[done]
        return Say(f"You said: {said}", delay_s=delay_s, chunk=4_096)

    return react


def _summary(chance: random.Random, thinking_s: float) -> Answering:
    """A summary, after a while; now and then something that is none."""
    if chance.random() < _POOR_SUMMARIES:
        return chance.choice((UNAVAILABLE, Say("No summary."), Call(SUMMARY_TOOL, "{oops")))
    return Call(SUMMARY_TOOL, {name: [f"{name} were talked about"] for name in HEADINGS}, delay_s=thinking_s)


def _facts(request: ChatRequest, chance: random.Random, thinking_s: float) -> Answering:
    """A fact for each message it is shown, after a while; now and then something that is none."""
    if chance.random() < _POOR_FACTS:
        return chance.choice((UNAVAILABLE, Say("Nothing to say."), Call(SAVE_FACTS, "{oops")))
    numbers = [int(found) for found in _NUMBERED.findall(request.last("user"))]
    facts = [{"kind": "fact", "text": f"Message {n} told something worth a fact", "sources": [n]} for n in numbers]
    return Call(SAVE_FACTS, {"facts": facts}, delay_s=thinking_s) if facts else Call(MARK_DONE, {})


def _call(name: str, key: str) -> Call:
    if name == "ask":
        return Call(ASK_FOR, {"question": f"Which number? ({key})", "type": "number"})
    return Call("memory_search", {"query": "shelf"}) if name == "search" else Call(name, {"key": key})


def _turn(request: ChatRequest) -> list[dict[str, Any]]:
    """What was said and done since the last answer, but for what memory recalled."""
    ended = (n for n, one in enumerate(request.messages, 1) if one["role"] == "assistant" and not one.get("tool_calls"))
    since = request.messages[max(ended, default=0) :]
    return [one for one in since if not text_of(one).startswith(_RECALLED)]


class Impatient(ReplyReceiver):
    """A receiver that hangs for a moment only and then hangs up, so that a test can wait for it."""

    async def _serve(self, connection: Connection, reaction: ReceiverReaction) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_HANG_S if reaction.act is Act.HANG else None):
                await super()._serve(connection, reaction)


async def _run(servers: Mapping[str, ModelServer | ReplyReceiver]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with suppress(PermissionError):  # stdin is not a pipe
        loop.add_reader(sys.stdin.fileno(), stop.set)
    async with AsyncExitStack() as serving:
        for server in servers.values():
            await serving.enter_async_context(server)
        sys.stdout.write(json.dumps({name: server.url for name, server in servers.items()}) + "\n")
        sys.stdout.flush()
        await stop.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Play one part until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m keepsaid_testkit.crash.world", description=main.__doc__)
    parser.add_argument("part", choices=("model", "receiver"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--thinking", type=float, default=0.35, help="seconds the model takes at most")
    parser.add_argument("--trouble", type=float, default=0.2, help="the share of replies that go wrong")
    parser.add_argument("--ledger", type=Path, help="where the receiver writes what it accepts")
    parser.add_argument("--ports", nargs=2, type=int, default=(0, 0), help="where to listen; 0 is any free one")
    options = parser.parse_args(arguments)
    asyncio.run(_run(_servers(options)))
    return 0


def _servers(options: argparse.Namespace) -> dict[str, ModelServer | ReplyReceiver]:
    """What a part listens with, by what it is called; the ports are in the same order."""
    first, second = options.ports
    if options.part == "model":
        return {"url": ModelServer(scripted(options.seed, options.thinking), port=first)}
    open_door = Impatient(seeded(options.seed, options.trouble), ledger=options.ledger, port=first)
    return {"url": open_door, "closed": ReplyReceiver(lambda _: refuse(410), port=second)}


if __name__ == "__main__":
    raise SystemExit(main())
