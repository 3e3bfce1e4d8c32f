"""The hub: who waits for a message hears of it, and of what is ahead of it in its lane."""

from __future__ import annotations

import asyncio

from tests.unit.memory_cast import LANE, message

from keepsaid.ports.channel import TurnProgress
from keepsaid.services.inbox import ProgressHub

FIRST, SECOND = message(1, "first"), message(2, "second")
ELSEWHERE = LANE._replace(key="root:elsewhere")


def heard(queue: asyncio.Queue[TurnProgress]) -> list[str]:
    return [queue.get_nowait().text for _ in range(queue.qsize())]


async def test_who_stands_behind_a_message_that_waits_hears_why() -> None:
    hub = ProgressHub()
    with hub.listening(1, LANE) as first, hub.listening(2, LANE) as second, hub.listening(3, ELSEWHERE) as other:
        hub.tell([FIRST], TurnProgress("waiting", "the model is away"))
        assert heard(first) == ["the model is away"]
        assert heard(second) == ["an earlier message here has to be answered first: the model is away"]
        assert heard(other) == []


async def test_of_an_answer_only_those_hear_whose_it_is() -> None:
    hub = ProgressHub()
    with hub.listening(1, LANE) as first, hub.listening(2, LANE) as second, hub.listening(2) as nowhere:
        hub.tell([FIRST], TurnProgress("delta", "hello"))
        hub.tell([FIRST, SECOND], TurnProgress("waiting", "both wait"))
        assert heard(first) == ["hello", "both wait"]
        assert heard(second) == heard(nowhere) == ["both wait"]


async def test_who_has_gone_is_told_nothing() -> None:
    hub = ProgressHub()
    with hub.listening(1, LANE) as gone:
        pass
    hub.tell([FIRST], TurnProgress("settled"))
    assert heard(gone) == []
