"""The longest names that the door lets in are stored, answered and remembered: no index is too small for them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.postgres.server import empty
from tests.waits import HANG_S

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.memory import Kind, Listener, NewMemory, person_scope
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.errors import InputError
from keepsaid.pipeline.intake import IntakeLimits

LIMITS = IntakeLimits()
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def name(chance: Random, size: int, *, wide: bool) -> str:
    """A name of so many bytes that no compression makes shorter."""
    if wide:
        return "".join(chr(chance.randint(0x4E00, 0x9FFF)) for _ in range(size // 3))
    return "".join(chance.choices(_LETTERS, k=size))


def inbound(n: int, origin: Origin, topic: str | None, marks: ProviderMarks) -> Inbound:
    return Inbound(origin, Content(b"%d" % n, f"my desk is blue {n}"), marks, topic=topic)


def longest(*, wide: bool) -> list[Inbound]:
    """Messages each of which has one name, or several, as long as it may be."""
    chance, most = Random(4), LIMITS.place_bytes_max - len("default") - 1
    plain = Origin("http", "default", "c", "ann", trust=Trust.OWNER)
    place, sender = name(chance, most, wide=wide), name(chance, LIMITS.id_bytes_max, wide=wide)
    ids = [name(chance, LIMITS.id_bytes_max, wide=wide) for _ in range(2)]
    return [
        inbound(1, replace(plain, conversation=place), None, ProviderMarks()),
        inbound(2, replace(plain, account=place), None, ProviderMarks()),
        inbound(3, plain, place, ProviderMarks()),
        inbound(4, replace(plain, sender=sender, direct=True), None, ProviderMarks()),
        inbound(5, plain, None, ProviderMarks(*ids)),
        inbound(6, plain, None, ProviderMarks(reply_to=place)),
    ]


async def settled(instance: Instance, said: Inbound) -> None:
    """Receive a message and wait until it is answered."""
    received = await instance.receive(said)
    with instance.hub.listening(received.id) as told:
        while (await told.get()).kind != "settled":
            pass


@pytest.mark.parametrize("wide", [False, True])
async def test_the_longest_names_are_stored_answered_and_remembered(
    place: PostgresPlace, tmp_path: Path, wide: bool
) -> None:
    empty(place)
    settings = {"store": {"url": place.url}, "models": {"chat": "none"}, "buffer": {"window_ms": 0}}
    config = Config.model_validate(settings)
    async with opened(Home.at(tmp_path), config) as instance, asyncio.timeout(HANG_S):
        await instance.start()
        messages = longest(wide=wide)
        for one in messages:
            await settled(instance, one)
        remembered = set[int]()
        while len(remembered) < len(messages):
            found = await instance.memories.text(Listener(None, everything=True), "desk", 20)
            remembered = {hit.memory_id for hit in found}
        sender = messages[3].origin.sender
        known = NewMemory("long", Kind.FACT, "the desk is blue", person_scope(sender), Trust.OWNER, None, sender)
        assert await instance.memories.keep([known], 1)
    empty(place)


@pytest.mark.parametrize("changed", ["conversation", "account", "sender"])
async def test_longer_ones_are_refused_wherever_the_stores_are(tmp_path: Path, changed: str) -> None:
    chance = Random(5)
    plain = Origin("http", "default", "c", "ann")
    async with opened(Home.at(tmp_path), Config.model_validate({"models": {"chat": "none"}})) as instance:
        for size, wide in ((1_000, False), (1_600, True)):
            given = name(chance, size + (100 if changed == "sender" else 0), wide=wide)
            names = {"account": "default", "conversation": "c", "sender": "ann", changed: given}
            longer = Origin("http", names["account"], names["conversation"], names["sender"])
            with pytest.raises(InputError, match=r"bytes|characters"):
                await instance.receive(inbound(1, longer, None, ProviderMarks()))
        topic = name(chance, 800, wide=False)
        with pytest.raises(InputError, match="800 bytes together"):
            await instance.receive(inbound(1, plain, topic, ProviderMarks()))
