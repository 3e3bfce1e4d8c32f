"""Previews: somebody types, and the answer is seen while it is written; nothing of it is stored or counts as sent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import site
from tests.unit.test_telegram import settings, texts

from keepsaid.domain.message import Lane, StoredMessage
from keepsaid.engine.previews import Previews
from keepsaid.ports.channel import TurnProgress
from keepsaid.testing.builders import CHANNEL, said
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.model_script import ChatRequest, Reaction, Say, Stall
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.telegram import TelegramServer


class Screen:
    """A channel that shows previews, as long as it says that it does."""

    name = CHANNEL
    typing_ms = 4_000

    def __init__(self, *, typing: bool = True, drafts: bool = True) -> None:
        self.typed = 0
        self.drafts: list[tuple[int, str]] = []
        self._shows = typing, drafts

    async def show_typing(self, _lane: Lane) -> bool:
        self.typed += 1
        return self._shows[0]

    async def show_draft(self, _lane: Lane, number: int, text: str) -> bool:
        self.drafts.append((number, text))
        return self._shows[1]


class Turn:
    """A turn whose progress is told."""

    def __init__(self, screen: Screen, clock: VirtualClock) -> None:
        self.told: list[str] = []
        inbound = said("hello")
        self._messages = [StoredMessage(17, inbound.lane, 1, inbound, 0)]
        channels: Any = {CHANNEL: screen}
        self._previews = Previews(self, channels, clock)

    def tell(self, _messages: object, progress: TurnProgress) -> None:
        """What others are told."""
        self.told.append(progress.kind)

    def goes_on(self, kind: Any, text: str = "") -> None:
        self._previews.tell(self._messages, TurnProgress(kind, text))


async def test_what_is_written_is_shown_five_times_a_second_at_most() -> None:
    clock, screen = VirtualClock(), Screen()
    turn = Turn(screen, clock)
    turn.goes_on("began")
    await clock.advance(0)
    assert screen.typed == 1
    for word in ("one ", "two ", "three "):
        turn.goes_on("delta", word)
        await clock.advance(10)
    assert screen.drafts == [(17, "one ")]
    await clock.advance(200)
    assert screen.drafts == [(17, "one "), (17, "one two three ")]
    turn.goes_on("delta", "four")
    turn.goes_on("settled")
    await clock.advance(1_000)
    assert len(screen.drafts) == 2
    assert turn.told == ["began", "delta", "delta", "delta", "delta", "settled"]


async def test_typing_is_shown_anew_until_the_end_and_for_ten_minutes_at_most() -> None:
    clock, screen = VirtualClock(), Screen()
    turn = Turn(screen, clock)
    turn.goes_on("began")
    for _ in range(3):
        await clock.advance(4_000)
    assert screen.typed == 4
    for _ in range(300):
        await clock.advance(4_000)
    assert screen.typed == 150
    turn.goes_on("began")
    await clock.advance(4_000)
    turn.goes_on("waiting", "the provider cannot be reached")
    await clock.advance(60_000)
    assert screen.typed == 152


async def test_what_a_channel_does_not_show_is_not_tried_again() -> None:
    clock, screen = VirtualClock(), Screen(typing=False, drafts=False)
    turn = Turn(screen, clock)
    turn.goes_on("began")
    for word in "some words come":
        turn.goes_on("delta", word)
        await clock.advance(5_000)
    assert (screen.typed, len(screen.drafts)) == (1, 1)


@pytest.mark.parametrize("trouble", [Mischief.ACCEPT, Mischief.FAIL, Mischief.RESET_AFTER])
async def test_a_draft_is_seen_before_the_answer(tmp_path: Path, trouble: Mischief) -> None:
    """In a direct chat; in a group only that somebody types. What goes wrong with either holds up nothing."""
    stalled = asyncio.Event()

    def say(request: ChatRequest) -> Reaction:
        if "slowly" in request.last("user") and not stalled.is_set():
            stalled.set()
            return Stall("The answer is **forty-two**, of course.", after_chars=20)
        return Say("The answer is **forty-two**, of course.")

    mischief = one_after_the_other(trouble, method="sendChatAction")
    listed = {"channels": {"telegram": {"allow": ["-50"], "answer": "always"}}}
    async with TelegramServer(mischief=mischief) as telegram, ModelServer(say) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k", "timeout_s": 3}
        async with site(tmp_path, **settings(telegram, models=models, **listed)) as at:
            telegram.say("what is the answer? say it slowly")
            await telegram.wait_for(lambda: bool(telegram.drafts))
            assert telegram.drafts[0]["text"].startswith("The answer is")
            assert {one["chat_id"] for one in telegram.drafts} == {7}
            assert texts(telegram) == []
            await telegram.wait_for(lambda: len(texts(telegram)) == 1)
            assert texts(telegram) == ["The answer is forty-two, of course."]
            telegram.say("and here?", sender=7, chat=-50)
            await telegram.wait_for(lambda: len(texts(telegram, -50)) == 1)
            assert {one["chat_id"] for one in telegram.drafts} == {7}
            assert all(one["action"] == "typing" for one in telegram.typing)
            assert at.rows("SELECT count(*) FROM reply") == [(2,)]
