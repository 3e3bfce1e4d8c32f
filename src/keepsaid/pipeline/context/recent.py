"""Recent messages: every record of the lane since its summary, appended to from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keepsaid.domain.context import Block, LaneTail
from keepsaid.domain.fence import Fence
from keepsaid.domain.prompt import Layer, Record, Role
from keepsaid.domain.scene import Scene
from keepsaid.domain.text import cut
from keepsaid.domain.tokens import estimate_tokens
from keepsaid.domain.turn import Recent
from keepsaid.pipeline.context.labels import MEMORY, POSTED, unforged
from keepsaid.pipeline.context.layer import left_out, of_lines
from keepsaid.pipeline.context.speech import folded, is_named, named

CUT_AT = 16
"""A tail that does not fit is cut at a position that this divides, so that it is cut seldom and then by more."""

_POST_CHARS_MAX = 2_000


def recent(scene: Scene, fence: Fence) -> tuple[tuple[Record, ...], Layer]:
    """The records as they are sent, and what they cost; where several people speak each begins with a name."""
    written = named if is_named(scene.claimed) else folded
    tail, given = scene.tail, scene.tail.recent
    records = tuple(map(written, given.records))
    blocks, posts = tail.blocks, tail.said_between
    if blocks or posts:
        placed = zip(tail.positions, records, strict=True)
        told = [
            one for at, record in placed for one in (*again(blocks.get(at), fence), record, *posted(posts.get(at, ())))
        ]
        records = *posted(posts.get(0, ())), *told
    return records, of_lines("recent", [_line(record) for record in records], left_out(given.left_out, "older record"))


def again(block: Block | None, fence: Fence) -> tuple[Record, ...]:
    """What an earlier turn was reminded of, as it was shown then."""
    return () if block is None else (Record(Role.USER, fence.within(MEMORY, block.text)),)


def posted(texts: Sequence[str]) -> tuple[Record, ...]:
    """What schedules said here: people read it as the agent's words, and the agent learns that they did."""
    said = (cut(unforged(text), _POST_CHARS_MAX) for text in texts)
    return tuple(Record(Role.USER, f"{POSTED} in your name, at its time]:\n{text}") for text in said)


def fitted(tail: LaneTail, tokens_max: int) -> LaneTail:
    """The newest records that fit, never a tool's result without its call."""
    given = tail.recent
    start, tokens = len(given.records), 0
    for place in range(len(given.records) - 1, -1, -1):
        tokens += estimate_tokens(given.records[place].text)
        if tokens > tokens_max:
            break
        start = place
    if not start:
        return tail
    start = next((n for n in range(start, len(tail.positions)) if tail.positions[n] % CUT_AT == 0), start)
    while start < len(given.records) and given.records[start].role is Role.TOOL:
        start += 1
    kept = Recent(given.records[start:], given.refs[start:], given.left_out + start)
    return replace(tail, recent=kept, positions=tail.positions[start:])


def _line(record: Record) -> str:
    if not record.calls:
        return record.text
    return record.text + "".join(f" [{call.name} {call.arguments}]" for call in record.calls)
