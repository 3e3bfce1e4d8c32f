"""Judging: the owner's word on a memory that a turn was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepsaid.domain.commits import Judge
from keepsaid.domain.memory import OWNER
from keepsaid.domain.receipt import JudgeMemory

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance


async def judge(instance: Instance, memory_id: int, turn_id: int, *, undo: bool) -> bool:
    """Say that it was wrong, or take that back; False when it was not shown, or nothing is to take back."""
    word = JudgeMemory(turn_id, memory_id, OWNER, "withdraw" if undo else "mark")
    return await instance.operations.apply(Judge(word, instance.clock.now_ms()))
