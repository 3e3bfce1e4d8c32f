"""Recent messages: every record of the lane since its summary, appended to from turn to turn."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer, Record, Role
from keepsaid.domain.scene import Scene
from keepsaid.domain.tokens import estimate_tokens
from keepsaid.domain.turn import Recent
from keepsaid.pipeline.context.layer import of_lines
from keepsaid.pipeline.context.speech import folded, is_named, named


def recent(scene: Scene) -> tuple[tuple[Record, ...], Layer]:
    """The records as they are sent, and what they cost; where several people speak each begins with a name."""
    written = named if is_named(scene.claimed) else folded
    records = tuple(map(written, scene.recent.records))
    left = scene.recent.left_out
    older = f"{left} older record{'' if left == 1 else 's'} left out" if left else ""
    return records, of_lines("recent", [_line(record) for record in records], older)


def fitted(given: Recent, tokens_max: int) -> Recent:
    """The newest records that fit, never a tool's result without its call."""
    records = given.records
    start, tokens = len(records), 0
    for position in range(len(records) - 1, -1, -1):
        tokens += estimate_tokens(records[position].text)
        if tokens > tokens_max:
            break
        start = position
    while start < len(records) and records[start].role is Role.TOOL:
        start += 1
    return Recent(records[start:], given.refs[start:], given.left_out + start) if start else given


def _line(record: Record) -> str:
    return record.text + "".join(f" [{call.name} {call.arguments}]" for call in record.calls)
