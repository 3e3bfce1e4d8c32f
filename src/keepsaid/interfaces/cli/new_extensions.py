"""Examples that `keepsaid ext new` writes: one working extension for each kind."""

from __future__ import annotations

from collections.abc import Mapping

_CHANNEL = '''"""{title}: a folder as a medium. A file NAME.txt is a message, NUMBER.answer is a reply."""

import asyncio

from keepsaid.extensions import Incoming, Reply, extension


@extension(id="{id}", version="0.1", channel={{"window_ms": 0}})
class {cls}:
    """Hears files, and answers with files."""

    async def initialize(self, context):
        self.folder = context.data

    async def listen(self, inbox):
        while True:
            for file in sorted(self.folder.glob("*.txt")):
                # It is on disk when this returns; the id keeps it from being taken in twice.
                await inbox.put(Incoming(file.read_text("utf-8"), "me", "{id}", external_id=file.name))
                file.unlink()
            await asyncio.sleep(1)

    async def send(self, reply: Reply):
        (self.folder / f"{{reply.id}}.answer").write_text(reply.draft.text, "utf-8")
'''

_TOOL = '''"""{title}: a tool for the model."""

import random

from keepsaid.extensions import extension, tool


@extension(id="{id}", version="0.1", config={{"sides_max": {{"type": "integer", "default": 100, "minimum": 2}}}})
class {cls}:
    """Rolls dice."""

    async def initialize(self, context):
        self.sides_max = context.config["sides_max"]

    @tool(kind="idempotent", limit_s=5, chars_max=100, name="{name}_roll")
    async def roll(self, sides: int = 6) -> str:
        """Roll one die with this number of sides, and return the result."""
        return str(random.randint(1, max(1, min(sides, self.sides_max))))
'''

_CONTEXT = '''"""{title}: a text for prompts."""

from datetime import datetime

from keepsaid.extensions import context, extension


@extension(id="{id}", version="0.1")
class {cls}:
    """Tells the model what day it is."""

    @context(priority=20)
    async def today(self, claimed):
        # Memory stands at 100. None adds nothing; what takes longer than half a second is left out.
        return f"Today is {{datetime.now():%A}}."
'''

_SCHEDULE = '''"""{title}: a text at a time."""

from keepsaid.extensions import extension, schedule


@extension(id="{id}", version="0.1")
class {cls}:
    """Sends the owner a text every morning."""

    async def initialize(self, context):
        self.clock = context.clock

    @schedule(name="morning", cron="0 8 * * *")
    async def morning(self):
        # The owner gets what is returned; None sends nothing.
        return "Good morning."
'''

_SUBSCRIBER = '''"""{title}: a reader of events."""

from keepsaid.extensions import extension, on


@extension(id="{id}", version="0.1", reads=["owner"])
class {cls}:
    """Logs the length of what the owner says in direct chats."""

    async def initialize(self, context):
        self.context = context

    @on("message.received")
    async def received(self, event):
        # Events carry ids. `reads` says which messages may be read; every other one raises ExtensionError.
        if event.payload["channel"] == "terminal":
            text = await self.context.read(event.payload["message"])
            self.context.log.info("a message of %d characters", len(text))
'''

_AGENT = """# {title}: an agent without code. Its runs are tasks: keepsaid inbox tasks ls
id: {id}
version: "0.1"
api: 1
description: Writes a sentence for the week.
schedules:
  - name: weekly
    cron: "0 9 * * 1"
    task: Write one encouraging sentence for the week.
agent:
  instructions: You write short texts. Answer with the text alone.
  tools: []
  limits: {{steps_max: 4, tokens_max: 500, time_s: 60}}
"""

KINDS: Mapping[str, str] = {
    "channel": _CHANNEL,
    "tool": _TOOL,
    "context": _CONTEXT,
    "schedule": _SCHEDULE,
    "subscriber": _SUBSCRIBER,
    "agent": _AGENT,
}
"""What can be begun, each with its example."""


def example(kind: str, id_: str) -> tuple[str, str]:
    """The place of a new extension in the folder of extensions, and its source."""
    words = id_.replace("_", "-").split("-")
    cls = "".join(word.capitalize() for word in words) or "Mine"
    place = f"{id_}/manifest.yaml" if kind == "agent" else f"{id_}.py"
    name = id_.replace("-", "_")
    return place, KINDS[kind].format(id=id_, cls=cls, title=" ".join(words).capitalize(), name=name)
