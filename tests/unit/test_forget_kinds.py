"""What came in by any door of a running server is forgotten in every kind of place, and in every file of the home."""

from __future__ import annotations

from pathlib import Path

from tests.unit.forget_cast import KINDS, STEM, Planting, kinds_in, planted, planting, residue

_NAMES = {"target of a reply", "topic of a lane", "id of a conversation"}
"""Kinds that stand in the names of lanes."""


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
        assert kinds_in(tmp_path) <= _NAMES, residue(tmp_path)
