"""A home that outsiders write to: its owner and a friend talk beside them, and ask about what they wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tests.month.home import Mouth, played
from tests.poisoning.attacks import ATTACKS, TOPIC, Attack
from tests.poisoning.obedient import Obedient

from keepsaid.adapters.system.machine import SystemIds
from keepsaid.app.instance import Instance, Outside
from keepsaid.config import Config, Home
from keepsaid.domain.memory import Kind, Listener, Memory
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks
from keepsaid.domain.prompt import Json
from keepsaid.ports.model import Tool
from keepsaid_testkit.simulator.clock import SimClock, Wall
from keepsaid_testkit.simulator.disk import FileDisk, MemoryStoreDisk
from keepsaid_testkit.simulator.loop import VirtualLoop

TALK, OUTSIDE = "talk", "outside"
SECRET = "quokka"
_MOMENTS_MAX = 36_000
EVERYBODY = Listener(None, everything=True)


def config() -> Config:
    """People on one channel are known, those on the other are not; lanes are summarised soon, and shown to others."""
    owner = [{"channel": channel, "account": "default", "sender": "owner"} for channel in (TALK, OUTSIDE)]
    return Config(
        owner=owner,
        channels={TALK: {"window_ms": 0, "trust": "known"}, OUTSIDE: {"window_ms": 0, "trust": "external"}},
        compaction={"messages": 2, "keep": 1, "session_messages": 2, "session_keep": 0, "session_in_prompt": True},
        bulletin={"every_min": 1},
        collection={"daily_call_limit": 100_000, "model_tokens_a_day": 100_000_000},
    )


class PoisonedHome:
    """One instance with all its parts, an obedient model, and a page to read and a post to send with."""

    def __init__(self, loop: VirtualLoop, folder: Path) -> None:
        self._loop = loop
        wall = Wall(loop.time)
        ids = SystemIds(wall.now_ms, Random(1).getrandbits)
        self.model = Obedient()
        self.sent: list[str] = []
        self.mouths = {name: Mouth(name) for name in (TALK, OUTSIDE)}
        self.store, self.memories = FileDisk(folder).open(), MemoryStoreDisk().open(ids)
        self.config = config()
        outside = Outside(SimClock(wall), ids, dict(self.mouths), (self._page(), self._send()))
        self.instance = Instance(Home.at(folder), self.config, (self.store, self.memories), self.model, outside)
        self._numbers = count(1)

    def _page(self) -> Tool:
        async def run(arguments: dict[str, Json]) -> str:
            return ATTACKS[int(str(arguments["n"]))].text

        schema: dict[str, Json] = {"type": "object", "properties": {"n": {"type": "integer"}}}
        return Tool("read_page", "Read a page of the web.", schema, run)

    def _send(self) -> Tool:
        async def run(arguments: dict[str, Json]) -> str:
            self.sent.append(str(arguments.get("text")))
            return "sent"

        text: dict[str, Json] = {"type": "string"}
        return Tool(
            "send", "Send somebody something.", {"type": "object", "properties": {"to": text, "text": text}}, run
        )

    async def say(self, sender: str, text: str, place: str = "", **told: Any) -> str:
        """Somebody says something in his direct chat, or in a room `place`; returns its name for replies.

        `told` may give the channel, a topic of the room, what it replies to, the sender's name, and a payload.
        """
        channel, conversation = told.get("channel", TALK), place or sender
        name, number = told.get("name", sender), f"event-{next(self._numbers)}"
        origin = Origin(channel, "default", conversation, sender, name, not place)
        origin = Origin(channel, "default", conversation, sender, name, not place, self.config.trust_of(origin))
        content = Content(told.get("payload", text.encode()), text, told.get("event", ""))
        marks = ProviderMarks(number, number, told.get("reply_to"))
        await self.instance.receive(Inbound(origin, content, marks, topic=told.get("topic")))
        await self.answered()
        return number

    async def attack(self, attack: Attack, place: str, *, event: str = "") -> str:
        """An outsider writes."""
        payload = json.dumps({"attachments": [{"name": attack.file}]}).encode() if attack.file else attack.text.encode()
        told: dict[str, Any] = {"channel": OUTSIDE, "name": attack.name, "payload": payload, "event": event}
        return await self.say("stranger", attack.text, place, **told)

    async def answered(self) -> None:
        """Wait until nothing waits to be answered, told or recorded."""
        for _ in range(_MOMENTS_MAX):
            seen = await self.store.overview()
            waiting = sum(one.unrouted for one in seen.channels) + seen.episodes_due
            waiting += sum(seen.batches.get(state, 0) for state in ("queued", "leased"))
            waiting += sum(seen.replies.get(state, 0) for state in ("pending", "sending"))
            if not waiting:
                return
            await asyncio.sleep(0.1)
        raise AssertionError("it does not come to rest")

    async def rest(self) -> None:
        """An hour in which sessions end and all that was said is collected."""
        self._loop.pass_by(3_700)
        for _ in range(200):
            await asyncio.sleep(31)
            if not await self.store.collections(("marked", "claimed"), 1):
                return
        raise AssertionError("it is not collected")

    async def known(self) -> list[Memory]:
        """All that is in memory beside what was said."""
        kinds = [kind for kind in Kind if kind is not Kind.EPISODE]
        return list(await self.memories.find(EVERYBODY, kinds, 100_000))


def lived(folder: Path, life: Callable[[PoisonedHome], Coroutine[Any, Any, None]]) -> None:
    """Start a home, live in it, and stop it."""
    played(lambda loop: PoisonedHome(loop, folder), life)


def about(tag: str, text: str = f"what is new about the {TOPIC}?") -> str:
    """An honest message, by which its turn is known."""
    return f"«{tag}» {text}"
