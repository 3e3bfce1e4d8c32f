"""Masking: no secret is written into memory, whoever keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keepsaid.domain.memory import NewMemory
from keepsaid.domain.redaction import masked
from keepsaid.ports.redactor import Redactor, marks_of


async def without_secrets(redactor: Redactor | None, memories: Sequence[NewMemory]) -> Sequence[NewMemory]:
    """The memories, with the secrets that the redactor knows masked in text and value."""
    if redactor is None:
        return memories
    found = await marks_of(redactor, [part for memory in memories for part in (memory.text, memory.value)])
    return [
        replace(memory, text=masked(memory.text, of_text), value=masked(memory.value, of_value))
        if of_text or of_value
        else memory
        for memory, of_text, of_value in zip(memories, found[::2], found[1::2], strict=True)
    ]
