"""Memories that say the same, by their vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.memory_cast import LANE

from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.domain.memory import GLOBAL, Kind, NewMemory, NewVector, VectorSpace
from keepsaid.domain.message import Trust
from keepsaid.testing.clock import CountingIds

SPACE = VectorSpace("test", "1", 2, b"x")
ABOVE = 0.85


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ((1.0, 0.0), True),
        ((0.0, 1.0), False),
        ((-1.0, 0.0), False),
        ((0.86, 0.5103), True),
        ((0.84, 0.5426), False),
    ],
    ids=["identical", "orthogonal", "opposite", "above", "below"],
)
async def test_cosines(tmp_path: Path, other: tuple[float, float], same: bool) -> None:
    store = await open_memories(tmp_path / "memory.db", CountingIds())
    texts = ["one way to say it", "another way", "without a vector"]
    new = [NewMemory(text, Kind.FACT, text, GLOBAL, Trust.OWNER, LANE) for text in texts]
    ids = await store.keep(new, 1)
    due = await store.unembedded(SPACE, 0, 9)
    vectors = [np.array(one, np.float32).tobytes() for one in ((1.0, 0.0), other)]
    made = [NewVector(piece.piece_id, vector) for piece, vector in zip(due, vectors, strict=False)]
    await store.keep_vectors(SPACE, made, 1)
    expected = ((min(ids[:2]), max(ids[:2])),) if same else ()
    assert await store.alike(ids[::-1], ABOVE) == expected
    assert await store.alike((), ABOVE) == ()
    await store.close()
