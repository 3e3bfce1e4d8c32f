"""Echoes, as a need: which sentences were forgotten, and whether a text repeats one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.memory import NewMemory


class Echoes(Protocol):
    """Recognises sentences that were forgotten; of them it keeps keyed hashes alone."""

    async def silence(self, sentences: Sequence[bytes], at: int, aside: int = 0) -> None:
        """Remember no text from now on that repeats one of these sentences, by their digests.

        With `aside`, the number of a forgetting, an undo of that takes them back.
        """
        ...

    async def repeated(self, sentences: Sequence[str], ids: Sequence[int]) -> frozenset[str]:
        """Those of the sentences, as folded words, that a person says in a memory that is not among these."""
        ...

    async def in_texts(self, said: Sequence[tuple[str, str]]) -> Sequence[bool]:
        """Whether each text, with the person who said it ("" for the agent), repeats a sentence that was forgotten."""
        ...

    async def in_memory(self, memory: NewMemory) -> bool:
        """Whether a memory was forgotten before, or repeats a sentence that was."""
        ...
