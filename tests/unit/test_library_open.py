"""A home that is not open, that nothing answers in, or that was given settings nobody reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.waits import HANG_S

from keepsaid import BlockingKeepsaid, ConfigError, InputError, Keepsaid, Message


@pytest.fixture
async def ks(tmp_path: Path) -> AsyncIterator[Keepsaid]:
    async with Keepsaid.open(tmp_path, settings={"models": {"chat": "none"}, "buffer": {"window_ms": 0}}) as opened:
        yield opened


async def test_one_that_is_not_open_says_so(tmp_path: Path) -> None:
    ks = Keepsaid.open(tmp_path)
    for _ in range(2):
        for use in (lambda: ks.inbox, lambda: ks.memory, lambda: ks.events):
            with pytest.raises(InputError, match="this home is not open"):
                use()
        for call in (ks.status, partial(ks.ask, "hello")):
            with pytest.raises(InputError, match="this home is not open"):
                await call()
        async with ks:
            pass


def test_a_blocking_one_that_is_not_open_says_so(tmp_path: Path) -> None:
    ks = BlockingKeepsaid(Keepsaid.open(tmp_path))
    with pytest.raises(InputError, match="this home is not open"):
        ks.status()
    with ks:
        memory = ks.memory
    for use in (ks.status, lambda: ks.memory, memory.list):
        with pytest.raises(InputError, match="this home is not open"):
            use()


async def test_settings_that_nobody_reads_are_refused(tmp_path: Path) -> None:
    unknown: tuple[dict[str, Any], ...] = ({"modles": {}}, {"models": {"chatt": "none"}})
    for wrong in unknown:
        with pytest.raises(ConfigError, match="did you mean models"):
            async with Keepsaid.open(tmp_path, settings=wrong):
                pass


async def test_what_is_no_text_is_refused(ks: Keepsaid) -> None:
    strange: Any = 5
    for call in (
        partial(ks.inbox.put, strange),
        partial(ks.inbox.put, Message(strange, "ann", "room")),
        partial(ks.inbox.put, Message("hello", "ann", strange)),
        partial(ks.memory.add, strange),
    ):
        with pytest.raises(InputError, match="not int"):
            await call()
    assert await ks.memory.list() == ()


async def test_one_kind_and_several_ids_may_be_given_either_way(ks: Keepsaid) -> None:
    one, two = [await ks.memory.add(text) for text in ("The boat is blue.", "The oar is red.")]
    assert await ks.memory.list("fact") == await ks.memory.list(["fact"])
    assert len(await ks.memory.list("fact")) == 2
    await ks.memory.forget([one, two])
    assert await ks.memory.list() == ()


async def test_who_asks_where_nothing_answers_is_warned(ks: Keepsaid, caplog: pytest.LogCaptureFixture) -> None:
    asking = asyncio.create_task(ks.ask("is anybody there?"))
    await ks.status()
    assert "nothing answers here" in caplog.text
    async with asyncio.timeout(HANG_S):
        batch = await anext(ks.inbox.batches("test"))
    await batch.done("I am")
    assert (await asking).text == "I am"
