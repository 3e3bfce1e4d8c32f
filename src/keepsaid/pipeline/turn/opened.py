"""Opened: the memories that a turn's model asked to see, read from what is recorded of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keepsaid.domain.ids import read
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.receipt import MEMORY_OPEN


def opened_in(records: Sequence[Record]) -> tuple[int, ...]:
    """Each once, in order; what could not be opened is not among them."""
    return tuple(dict.fromkeys(_opened(records)))


def _opened(records: Sequence[Record]) -> Iterator[int]:
    calls: frozenset[str] = frozenset()
    for one in records:
        if one.role is Role.ASSISTANT:
            calls = frozenset(call.id for call in one.calls if call.name == MEMORY_OPEN)
        elif one.role is Role.TOOL and one.call_id in calls:
            number = read("memory", one.text.split(maxsplit=1)[0]) if one.text.startswith("mem_") else None
            if number is not None:
                yield number
