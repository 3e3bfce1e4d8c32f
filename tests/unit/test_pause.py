"""`/pause` and `/resume`: messages wait without an answer and are answered later, also after a restart."""

from __future__ import annotations

from pathlib import Path

from tests.unit.test_commands import OWNER, Parrot, instance_in
from tests.unit.test_remember import say

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home
from keepsaid.domain.message import Content, Inbound


async def put(instance: Instance, text: str) -> int:
    """Say something and wait for nothing."""
    return (await instance.receive(Inbound(OWNER, Content(text.encode(), text), priority=10))).id


async def answers(instance: Instance, *messages: int) -> list[str]:
    """The replies to messages, once all are answered."""
    found = []
    for message_id in messages:
        with instance.hub.listening(message_id) as heard:
            while (story := await instance.operations.story(message_id)) is None or story.state != "done":
                await heard.get()
        found.append("".join(reply.draft.text for reply in story.replies))
    return found


async def test_what_waits_is_answered_in_order_after_a_restart(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), instance_in(tmp_path), Parrot()) as instance:
        await instance.start()
        assert (await say(instance, "/pause")).startswith("Paused.")
        first = await put(instance, "one")
        status = await say(instance, "/status")
        assert "me on terminal is paused" in status
        assert "1 message waits there" in status
        assert "- terminal: unrouted 0, queued 1, leased 1, oldest" in status
        second = await put(instance, "two")
        with instance.hub.listening(second) as heard:
            assert "paused" in (await heard.get()).text
        inbox = (await say(instance, "/inbox")).splitlines()
        assert [line.rpartition("  ")[2] for line in inbox] == ["two", "one"]
    async with opened(Home.at(tmp_path), instance_in(tmp_path), Parrot()) as instance:
        await instance.start()
        assert "is paused" in await say(instance, "/status")
        for message_id in (first, second):
            story = await instance.operations.story(message_id)
            assert story is not None
            assert story.state == "batched"
        assert (await say(instance, "/resume")).startswith("Resumed.")
        third = await put(instance, "three")
        assert await answers(instance, first, second, third) == ["0: one", "2: two", "4: three"]
        assert await say(instance, "/status") == "Running: nothing waits."
