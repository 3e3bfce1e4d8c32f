"""New extensions: examples that work, to be changed into one's own."""

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
        """Roll one die with so many sides, and return what it shows."""
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

KINDS: Mapping[str, str] = {"channel": _CHANNEL, "tool": _TOOL, "context": _CONTEXT}
"""What can be begun, each with its example."""


def example(kind: str, id_: str) -> str:
    """The source of a new extension."""
    words = id_.replace("_", "-").split("-")
    cls = "".join(word.capitalize() for word in words) or "Mine"
    return KINDS[kind].format(id=id_, cls=cls, title=" ".join(words).capitalize(), name=id_.replace("-", "_"))
