"""What is at work while something is forgotten does not write it down afterwards; what comes later does neither."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.property.forgetting_world import STORES, EachSentence, World, world
from tests.unit.http_cast import site
from tests.unit.test_forget_places import residue

from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.effects import SetPersonality
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.memory import person_scope
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.process import Note
from keepsaid.domain.session import Left, Passage
from keepsaid.ports.model import Extracted
from keepsaid.testing.builders import ACCOUNT, CHANNEL, outcome
from keepsaid.testing.webhooks import payload, sign

_WORD = "Zebraquoex7741"
_ANN = f"{CHANNEL}:{ACCOUNT}:ann"
_SECRET = "a lantern at the end of the pier"  # gitleaks:allow


class Interrupted(EachSentence):
    """Has read a passage when something else happens, the first time."""

    def __init__(self, happens: Callable[[], Awaitable[object]]) -> None:
        self.happens = happens
        self.reads = 0

    async def extract(self, passage: Passage) -> Extracted:
        found = await super().extract(passage)
        self.reads += 1
        if self.reads == 1:
            await self.happens()
        return found


@pytest.fixture(params=STORES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A world on either operational store."""
    async with world(request.param, tmp_path) as made:
        yield made


async def test_what_was_read_before_it_was_forgotten_is_not_kept(stage: World, tmp_path: Path) -> None:
    message = await stage.say(f"the locker code is {_WORD}")
    await stage.say("the gym is in Braga")
    stage.read_with(Interrupted(lambda: stage.forget(ForgetSelector(messages=(message,)))))
    await stage.mark()
    claimed = await stage.collection.claim()
    assert claimed is not None
    assert await stage.collection.read(claimed) is Left.REFUSED
    assert residue(tmp_path, _WORD) == set()
    assert await stage.collector.tick() == 1, "it is read again, from what stays"
    assert await stage.texts() == ["the gym is in Braga", "the gym is in Braga"]
    assert residue(tmp_path, _WORD) == set()


async def test_a_person_takes_along_how_one_speaks_with_them(stage: World) -> None:
    scope = person_scope(_ANN)
    origin = Origin(CHANNEL, ACCOUNT, "room", "ann", trust=Trust.KNOWN)
    await stage.road.queue(Inbound(origin, Content(b"softly", "softly")), 5)
    claimed = await stage.road.claim_one(5)
    wish = SetPersonality(scope, f"call me {_WORD}", _ANN)
    batch = claimed.batch
    end = replace(outcome("fine"), effects=(wish,))
    assert await stage.operations.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 6))
    await stage.operations.apply(Note(f"asked:{_ANN}", _WORD, 10_000_000, 6))
    await stage.operations.apply(Note("other", "stays", 10_000_000, 6))
    assert await stage.operations.personalities((scope,)) != ()
    done = await stage.forget(ForgetSelector(person=_ANN), 86_400_000)
    assert done is not None
    assert await stage.operations.personalities((scope,)) == ()
    assert [await stage.operations.note(name, 7) for name in (f"asked:{_ANN}", "other")] == ["", "stays"]
    await stage.forgetter.undo(done.id)
    assert [one.text for one in await stage.operations.personalities((scope,))] == [f"call me {_WORD}"]
    assert await stage.operations.note(f"asked:{_ANN}", 7) == _WORD


async def test_a_redelivery_after_the_forgetting_leaves_no_name(tmp_path: Path) -> None:
    channels = {"github": {"secret": _SECRET, "window_ms": 0, "quiet_ms": 0}}
    async with site(tmp_path / "home", channels=channels) as running:
        body = json.dumps(payload("issues", 3)).encode()

        async def deliver(name: str) -> dict[str, str]:
            signed = {"x-github-event": "issues", "x-hub-signature-256": sign(_SECRET, body)}
            headers = {"content-type": "application/json", "x-github-delivery": name, **signed}
            told: dict[str, str] = (await running.client.post("/hooks/github", content=body, headers=headers)).json()
            return told

        first = await deliver(f"{_WORD}-1")
        assert (await deliver(f"{_WORD}-2"))["intake"] == "duplicate"
        await running.settled(first["id"])
        [(number,)] = running.rows("SELECT id FROM message")
        assert (
            await running.instance.services.forgetting.forget_selected(ForgetSelector(messages=(number,)), "owner")
            is not None
        )
        await running.client.post("/v1/forget/settled", json={"wait_s": 60}, headers=running.owner)
        again = await deliver(f"{_WORD}-3")
        assert (again["intake"], again["id"]) == ("duplicate", first["id"])
        assert residue(tmp_path, _WORD) == set()
