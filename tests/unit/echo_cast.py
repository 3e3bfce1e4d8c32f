"""The cast of tests in which no sentence was forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.domain.memory import NewMemory


class NoEchoes:
    """Nothing was forgotten."""

    async def silence(self, sentences: Sequence[bytes], at: int, aside: int = 0) -> None:
        raise AssertionError("nothing is forgotten here")

    async def repeated(self, sentences: Sequence[str], ids: Sequence[int]) -> frozenset[str]:
        return frozenset()

    async def in_texts(self, said: Sequence[tuple[str, str]]) -> Sequence[bool]:
        return [False] * len(said)

    async def in_memory(self, memory: NewMemory) -> bool:
        return False
