"""What comes to mind in a turn of several messages, after a cut of the context, and by which calls of the model."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.test_reminding import ASKED, OWNER, SECRET, Obedient, config, say, talking

from keepsaid.domain.compaction import CutContext, CutReason
from keepsaid.domain.message import Content, Inbound
from keepsaid.domain.views import MessageFilter


async def test_messages_of_one_batch_are_reminded_together_and_once(tmp_path: Path) -> None:
    model = Obedient()
    settings = config(channels={"terminal": {"window_ms": 300}})
    async with talking(tmp_path, settings, model) as instance:
        said = [ASKED, "I ask for the codeword of vault seven again.", "The codeword, vault seven!"]
        received = [await instance.receive(Inbound(OWNER, Content(text.encode(), text))) for text in said]
        while {story.state for story in await instance.operations.find(MessageFilter(limit=9))} != {"done"}:
            await instance.clock.wait(asyncio.Event(), 20)
        assert len({one.id for one in received}) == 3
    [asked] = model.prompts
    assert asked.prompt.recalled.count(SECRET) == 1
    assert all(text in asked.prompt.user for text in said)


async def test_a_cut_of_the_context_forgets_nothing_of_what_was_given(tmp_path: Path) -> None:
    model, settings = Obedient(), config(memory={"reinject_turns": 3})
    async with talking(tmp_path, settings, model) as instance:
        await say(instance, ASKED)
        [story] = await instance.operations.find(MessageFilter(limit=1))
        lane = story.message.lane
        tail = await instance.operations.context(lane, 10)
        wanted = CutContext(lane, tail.version, tail.positions[-1], CutReason.GUARD, instance.clock.now_ms())
        assert await instance.operations.apply(wanted)
        await say(instance, ASKED)
    assert model.seen == [(1, 0), (0, 0)], "it was given two turns ago"


async def test_reminding_and_recording_ask_no_model(tmp_path: Path) -> None:
    model = Obedient()
    async with talking(tmp_path, config(), model) as instance:
        for text in (ASKED, "hello there", ASKED):
            await say(instance, text)
        while await instance.recorder.catch_up():
            pass
        assert (await instance.memories.counts())["episode"] == 6
    assert (len(model.prompts), model.summarised) == (3, [])
