"""Masking: no secret is written into memory, whoever keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keepsaid.domain.memory import NewMemory
from keepsaid.ports.redactor import Redactor, masked_texts


async def without_secrets(redactor: Redactor | None, memories: Sequence[NewMemory]) -> Sequence[NewMemory]:
    """The memories, with the secrets that the redactor knows masked in text and value."""
    if redactor is None:
        return memories
    found = await masked_texts(redactor, [part for memory in memories for part in (memory.text, memory.value)])
    return [
        replace(memory, text=text.text, value=value.text) if text.marks or value.marks else memory
        for memory, text, value in zip(memories, found[::2], found[1::2], strict=True)
    ]
