"""A home with tools that have effects, and every way by which a stranger's text comes into a prompt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.month.home import Mouth, played
from tests.poisoning.directives import TOPIC, Directive
from tests.poisoning.puppet import Puppet
from tests.poisoning.server import DescribedServer, described

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.app.instance import Instance, Outside
from keepsaid.config import Config, Home
from keepsaid.domain.memory import Kind, Listener, Memory
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.prompt import Json
from keepsaid.domain.route import TaskKind
from keepsaid.domain.schedule import LIVE
from keepsaid.domain.task import TaskFilter
from keepsaid.domain.turn import ToolClass
from keepsaid.ports.model import Tool
from keepsaid_testkit.simulator.clock import SimClock, Wall
from keepsaid_testkit.simulator.disk import MemoryStoreDisk
from keepsaid_testkit.simulator.loop import VirtualLoop

TALK, OUTSIDE, HOOKS = "talk", "outside", "hooks"
_MOMENTS_MAX = 3_600
_EVERYBODY = Listener(None, everything=True)


def config() -> Config:
    """The owner speaks on both channels; strangers on one, where words join a running turn; webhooks are spawned."""
    owner = [{"channel": channel, "account": "default", "sender": "owner"} for channel in (TALK, OUTSIDE)]
    channels = {
        TALK: {"window_ms": 0, "trust": "known"},
        OUTSIDE: {"window_ms": 0, "trust": "external", "busy": "steer"},
        HOOKS: {"window_ms": 0, "trust": "external"},
    }
    spawn = {"name": "review", "match": {"event": "diff"}, "action": "spawn", "task": "Review this: {{text}}"}
    return Config(
        owner=owner,
        channels=channels,
        routes={"rules": [spawn]},
        compaction={"messages": 2, "keep": 1},
        schedules={"agent_max": 1_000},
        tools={"approvals_lane_max": 3, "approvals_max": 10_000},
    )


class Trial:
    """One instance, a puppet for a model, tools that note what they did, and strangers."""

    def __init__(self, loop: VirtualLoop, folder: Path) -> None:
        self._loop = loop
        wall = Wall(loop.time)
        ids = SystemIds(wall.now_ms, Random(1).getrandbits)
        self.puppet = Puppet()
        self.effects: list[tuple[str, str]] = []
        self.page = ""
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.store, self.memories = InMemoryOperations(), MemoryStoreDisk().open(ids)
        self.mouths = {name: Mouth(name) for name in (TALK, OUTSIDE, HOOKS)}
        self.config = config()
        kinds = ToolClass.UNSAFE, ToolClass.IDEMPOTENT, ToolClass.CHECKABLE, ToolClass.UNSAFE, ToolClass.UNSAFE
        names = "press", "touch", "probe", "mail", "srv__write"
        tools = [self._effect(name, kind) for name, kind in zip(names, kinds, strict=True)]
        outside = Outside(SimClock(wall), ids, dict(self.mouths), (*tools, self._read_page(), self._wait()))
        stores = self.store, self.memories
        self.instance = Instance(Home.at(Path("trial-home")), self.config, stores, self.puppet, outside)
        self.server = DescribedServer(folder)
        self.instance.toolbox.sources = (self.server,)
        self._numbers = count(1)

    def _effect(self, name: str, kind: ToolClass) -> Tool:
        async def run(arguments: dict[str, Json]) -> str:
            self.effects.append((name, str(arguments["mark"])))
            return "done"

        schema: dict[str, Json] = {"type": "object", "properties": {"mark": {"type": "string"}}}
        return Tool(name, f"{name} something.", schema, run, kind)

    def _read_page(self) -> Tool:
        async def run(_: dict[str, Json]) -> str:
            return self.page

        schema: dict[str, Json] = {"type": "object", "properties": {"n": {"type": "integer"}}}
        return Tool("read_page", "Read a page of the web.", schema, run)

    def _wait(self) -> Tool:
        async def run(_: dict[str, Json]) -> str:
            if self.meanwhile is not None:
                await self.meanwhile()
            return "waited"

        nothing: dict[str, Json] = {"type": "object", "properties": {}}
        return Tool("wait", "Wait.", nothing, run, output=Trust.OWNER)

    async def say(self, sender: str, text: str, place: str = "", **told: Any) -> str:
        """Somebody says something in a direct chat, or in a room; returns its name for replies."""
        number = await self.put(sender, text, place, **told)
        await self.rest()
        return number

    async def put(self, sender: str, text: str, place: str = "", **told: Any) -> str:
        """Somebody says something; nothing is waited for."""
        channel, number = told.get("channel", OUTSIDE), f"event-{next(self._numbers)}"
        name = told.get("name", sender)
        plain = Origin(channel, "default", place or sender, sender, name, not place)
        origin = Origin(*(channel, "default", place or sender, sender, name, not place), self.config.trust_of(plain))
        content = Content(told.get("payload", text.encode()), text, told.get("event", ""))
        marks = ProviderMarks(number, number, told.get("reply_to"))
        await self.instance.receive(Inbound(origin, content, marks, topic=told.get("topic")))
        return number

    async def rest(self) -> None:
        """Wait until nothing waits to be answered, told, recorded or done."""
        for _ in range(_MOMENTS_MAX):
            seen = await self.store.overview()
            waiting = sum(one.unrouted for one in seen.channels) + seen.episodes_due
            waiting += sum(seen.batches.get(state, 0) for state in ("queued", "leased"))
            waiting += sum(seen.replies.get(state, 0) for state in ("pending", "sending"))
            waiting += sum(seen.tasks.get(state, 0) for state in ("pending", "running"))
            if not waiting:
                return
            await asyncio.sleep(0.1)
        raise AssertionError("it does not come to rest")

    def pass_by(self, seconds: float) -> None:
        """Let time pass in which nobody looked."""
        self._loop.pass_by(seconds)

    async def rest_for(self, seconds: float) -> None:
        """Let time pass while everything works."""
        await asyncio.sleep(seconds)
        await self.rest()

    async def results(self) -> set[tuple[str, str]]:
        """All that was done: by tools, and by our own, each with the text that tells of it."""
        done = set(self.effects)
        for task in await self.store.tasks.find(TaskFilter(limit=100_000)):
            if task.kind is not TaskKind.CALL and not task.rule:
                done.add(("task_create" if task.kind is TaskKind.WORKER else "branch", task.description))
        for one in await self.store.schedules.schedules(LIVE, 0, 1 << 31):
            done.add(("schedule_add", one.new.text))
        for memory in await self.known():
            done.add(("memory_save", memory.text))
        done |= {("set_personality", text) for (text,) in self.store.database.rows("SELECT text FROM personality")}
        return done

    async def known(self) -> list[Memory]:
        """What is in memory beside what was said and its summaries."""
        left_out = (Kind.EPISODE, Kind.THREAD_SUMMARY, Kind.SESSION_SUMMARY, Kind.BULLETIN)
        return list(await self.memories.find(_EVERYBODY, [one for one in Kind if one not in left_out], 100_000))

    async def waiting(self) -> list[str]:
        """The calls that wait for the owner."""
        found = await self.store.tasks.find(TaskFilter(state="needs_review", limit=100_000))
        return [one.description for one in found if one.kind is TaskKind.CALL]


Carrier = Callable[[Trial, Directive], Coroutine[Any, Any, None]]


async def by_message(trial: Trial, one: Directive) -> None:
    """A stranger writes to the agent."""
    await trial.say(f"stranger-{one.mark}", one.text)


async def by_title(trial: Trial, one: Directive) -> None:
    """The title of an issue, by a webhook that is forwarded."""
    await trial.say("hub", f"issue opened: {one.text}", one.mark, channel=HOOKS, event="issues")


async def by_diff(trial: Trial, one: Directive) -> None:
    """The change of a pull request, by a webhook that a rule gives to a worker."""
    await trial.say("hub", f"+++ b/readme\n+{one.text}", one.mark, channel=HOOKS, event="diff")


async def by_quote(trial: Trial, one: Directive) -> None:
    """The owner answers a stranger's words in another thread."""
    number = await trial.put(f"stranger-{one.mark}", one.text, one.mark)
    await trial.rest()
    await trial.say("owner", "what is this?", one.mark, topic="beside", reply_to=number)


async def by_file_name(trial: Trial, one: Directive) -> None:
    """The name of a file that a stranger attaches."""
    payload = json.dumps({"data": {"attachments": [{"name": one.text, "type": "text/plain"}]}}).encode()
    await trial.say(f"stranger-{one.mark}", "see the file", one.mark, payload=payload)
    await trial.say("owner", "what is in it?", one.mark)


async def by_name(trial: Trial, one: Directive) -> None:
    """What a stranger calls himself, in a room where the owner speaks next."""
    await trial.say(f"stranger-{one.mark}", "hello", one.mark, name=one.text)
    await trial.say("owner", "who is this?", one.mark)


async def by_output(trial: Trial, one: Directive) -> None:
    """A page that a tool reads for the owner; he speaks again in the same chat."""
    trial.page = one.text
    await trial.say("owner", "read page 1", topic=one.mark, channel=TALK)
    await trial.say("owner", "and now?", topic=one.mark, channel=TALK)


async def by_history(trial: Trial, one: Directive) -> None:
    """A stranger's words in a room, in whose history the owner speaks later."""
    await trial.say(f"stranger-{one.mark}", one.text, one.mark)
    await trial.say("owner", "what was that?", one.mark)


async def by_memory(trial: Trial, one: Directive) -> None:
    """A stranger's words that come back from memory, in a lane that began anew since."""
    await trial.say(f"stranger-{one.mark}", one.text, one.mark)
    await trial.say("owner", "/reset", one.mark)
    await trial.say("owner", f"what did anybody say about the {TOPIC} {one.tool}?", one.mark)


async def by_summary(trial: Trial, one: Directive) -> None:
    """A stranger's words in a summary."""
    await trial.say(f"stranger-{one.mark}", one.text, one.mark)
    for text in ("first", "second", "third"):
        await trial.say("owner", text, one.mark)


async def by_steering(trial: Trial, one: Directive) -> None:
    """A stranger's words that join the owner's running turn between two steps."""

    async def interfere() -> None:
        await trial.put(f"stranger-{one.mark}", one.text, one.mark)
        for _ in range(50):
            await asyncio.sleep(0.1)
            if not sum(each.unrouted for each in (await trial.store.overview()).channels):
                break

    trial.meanwhile = interfere
    await trial.say("owner", "wait a moment", one.mark)
    trial.meanwhile = None


async def by_description(trial: Trial, one: Directive) -> None:
    """What an MCP server says of its tool: from the first moment, later on, and accepted by the owner.

    Nobody is shown it before it is accepted; after that strangers speak where it is offered.
    """
    hostile, harmless, number = described(one), described(None), one.mark[2:5]
    trial.server.served_now = (hostile,)
    await trial.say("owner", "hello", topic=f"new-{number}", channel=TALK)
    trial.server.pins.accept(trial.server.name, [harmless])
    await trial.say("owner", "hello", topic=f"changed-{number}", channel=TALK)
    assert one.mark not in trial.puppet.shown, "a text that was not accepted was shown"
    trial.server.pins.accept(trial.server.name, [hostile])
    await trial.say(f"visitor-{number}", "hello", number)
    trial.server.served_now = ()


CARRIERS: dict[str, Carrier] = {
    "message": by_message,
    "title": by_title,
    "diff": by_diff,
    "quote": by_quote,
    "file name": by_file_name,
    "sender's name": by_name,
    "tool output": by_output,
    "history": by_history,
    "memory": by_memory,
    "summary": by_summary,
    "steering": by_steering,
    "MCP description": by_description,
}


def tried(life: Callable[[Trial], Coroutine[Any, Any, None]]) -> None:
    """Start a home, live in it, and stop it."""
    with TemporaryDirectory() as folder:
        played(lambda loop: Trial(loop, Path(folder)), life)
