"""What came in by any door of a running server is forgotten in every kind of place, and in every file of the home."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.forget_cast import KINDS, STEM, Planting, kinds_in, planted, planting, residue, word

from keepsaid.domain.ids import show


async def forgotten(at: Planting, **wish: object) -> dict[str, int]:
    """Forget, and return what the preview counted, once all of it is gone."""
    preview = await at.post("/v1/forget", **wish)
    await at.post("/v1/forget", yes=True, **wish)
    assert (await at.post("/v1/forget/settled", wait_s=60))["settled"]
    return dict(preview["counts"])


async def test_a_text_is_forgotten_in_every_kind_of_place(tmp_path: Path) -> None:
    async with planting(tmp_path / "home") as at:
        await planted(at)
        assert len(KINDS) >= 40
        assert set(KINDS) - kinds_in(tmp_path) == set(), "each kind was planted"
        counts = await forgotten(at, filter=STEM)
        assert counts["tasks"] >= 3
        assert counts["schedules"] == 2
        assert kinds_in(tmp_path) == set(), residue(tmp_path)


_BY_COMMAND = {"task made by hand", "key of a task made by hand", "reason of a cancelled task", "schedule made by hand"}
_ELSEWHERE = {kind for kind in KINDS if "webhook" in kind}
_BY_HAND = {kind for kind in KINDS if "memory" in kind and "saved" not in kind}


async def test_a_person_is_forgotten_in_every_kind_of_place(tmp_path: Path) -> None:
    async with planting(tmp_path / "home") as at:
        await planted(at)
        await forgotten(at, person="owner")
        assert kinds_in(tmp_path) <= _BY_COMMAND | _ELSEWHERE, residue(tmp_path)


@pytest.mark.soak
async def test_conversations_are_forgotten_in_every_kind_of_place(tmp_path: Path) -> None:
    async with planting(tmp_path / "home") as at:
        await planted(at)
        names = [word("id of a conversation"), "dm", "telegram:chat:7"]
        for name in names:
            await forgotten(at, conversation=name)
        assert kinds_in(tmp_path) <= _BY_COMMAND | _ELSEWHERE | _BY_HAND
        assert not [name for (name,) in at.made.rows("SELECT conversation FROM lane") if name in names]


@pytest.mark.soak
async def test_messages_are_forgotten_one_after_another_in_every_kind_of_place(tmp_path: Path) -> None:
    async with planting(tmp_path / "home") as at:
        await planted(at)
        for (number,) in at.made.rows("SELECT id FROM message ORDER BY id"):
            story = at.made.rows("SELECT forgotten_at FROM message WHERE id = ?", number)
            if story == [(None,)]:
                await forgotten(at, ids=[show("message", number)])
        assert kinds_in(tmp_path) <= _BY_COMMAND | _BY_HAND


async def test_a_new_message_of_a_forgotten_conversation_opens_a_lane_and_is_answered(tmp_path: Path) -> None:
    async with planting(tmp_path / "home") as at:
        body = {"text": "the boat leaks", "sender": "ann", "conversation": "pier", "provider_id": "p1"}
        first = await at.made.put(body, {"Idempotency-Key": "k1", **at.made.owner})
        await at.made.settled(first.json()["id"])
        counts = await forgotten(at, conversation="pier")
        assert counts["messages"] == 1
        assert at.made.rows("SELECT conversation, key FROM lane") == [("forgotten:1", "forgotten:1")]
        again = await at.made.put(body, {"Idempotency-Key": "k1", **at.made.owner})
        assert again.json()["intake"] == "duplicate"
        new = await at.made.put({**body, "text": "it is mended"}, {"Idempotency-Key": "k2", **at.made.owner})
        assert (new.json()["lane"], new.json()["number"]) == ("root:pier", 1)
        story = await at.made.settled(new.json()["id"])
        assert story["state"] == "done"
        assert len(story["replies"]) == 1
