"""What `keepsaid why` prints in ten situations: kept in a file, so that a change is read by a person."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.month.home import VirtualHome, lived

from keepsaid.config import Config
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import ToolCall
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.domain.views import MessageFilter
from keepsaid.errors import ModelRejected, ModelUnreachable
from keepsaid.interfaces.cli.why import explained
from keepsaid.ports.model import Delta, ModelRequest

Life = Callable[[VirtualHome], Awaitable[None]]
FACT = "My sister Marta lives in Lisbon."
_QUIET = {"bulletin": {"enabled": False}, "collection": {"extractor": "none"}, "maintenance": {"enabled": False}}
_CHANNELS = {"talk": {"window_ms": 0}, "hooks": {"window_ms": 0}}


class Answers:
    """A model that answers by what it is asked: one refusal, one outage, one call of a tool, else a sentence."""

    name = "test/answers"

    async def answer(self, request: ModelRequest, _delta: Delta) -> ModelAnswer:
        asked = request.prompt.user
        if "forbidden" in asked:
            raise ModelRejected("the provider refused the request (HTTP 400)")
        if "outage" in asked:
            raise ModelUnreachable("the provider cannot be reached")
        if "the notes" in asked and not request.exchange:
            return ModelAnswer(
                "", (ToolCall("call-1", "memory_search", '{"query": "kettle"}'),), Usage(120, 8), self.name
            )
        return ModelAnswer("Noted.", (), Usage(120, 8), self.name)


async def _first(home: VirtualHome) -> None:
    await home.say("ann", "hello")


async def _recalled(home: VirtualHome) -> None:
    await home.instance.services.memories.add(FACT, "fact")
    await home.say("ann", "Where does Marta live?")


async def _left_out(home: VirtualHome) -> None:
    await _recalled(home)
    await home.say("ann", "Does Marta live far away?")


async def _wrong(home: VirtualHome) -> None:
    await _recalled(home)
    await home.say("ann", "/wrong 1")


async def _tool(home: VirtualHome) -> None:
    await home.instance.services.memories.add("The kettle is in the cellar.", "fact")
    await home.say("ann", "Look for it in the notes")


async def _command(home: VirtualHome) -> None:
    await home.say("ann", "/remember The bins go out on Mondays.")


async def _refused(home: VirtualHome) -> None:
    await home.say("ann", "something forbidden")


async def _outage(home: VirtualHome) -> None:
    saying = asyncio.create_task(home.say("ann", "an outage begins"))
    await asyncio.sleep(20)
    saying.cancel()


async def _group(home: VirtualHome) -> None:
    await home.instance.services.memories.add(FACT, "fact")
    await home.say("bob", "Where does Marta live?", conversation="kitchen", trust=Trust.EXTERNAL)


async def _webhook(home: VirtualHome) -> None:
    await home.hook("issues", "Ann opened issue 7: the lamp is broken")


SITUATIONS: dict[str, tuple[Life, int]] = {
    "nothing is remembered": (_first, 0),
    "a memory came to mind": (_recalled, 0),
    "a memory is in the prompt already": (_left_out, 0),
    "a person said that a memory was wrong": (_wrong, 1),
    "the model called a tool": (_tool, 0),
    "a command was carried out": (_command, 0),
    "the model refused": (_refused, 0),
    "the model cannot be reached": (_outage, 0),
    "a stranger asks in a group": (_group, 0),
    "a webhook": (_webhook, 0),
}
"""Each with what happens, and how many messages came after the one that is explained."""


def page() -> str:
    """The text of every situation."""
    return "\n\n".join(f"# {name}\n{_explained(*told)}" for name, told in SITUATIONS.items()) + "\n"


def _explained(life: Life, before: int) -> str:
    lines: list[str] = []

    async def whole(home: VirtualHome) -> None:
        await life(home)
        story = (await home.store.find(MessageFilter(limit=before + 1)))[before]
        assert story.turn_id is not None, "nothing answered it"
        turn = await home.store.turn(story.turn_id)
        assert turn is not None
        lines.extend(explained(turn))

    lived(Answers(), Config.model_validate({"channels": _CHANNELS, **_QUIET}), whole)
    return "\n".join(lines)
