"""Status: the time, and side work under way; for this turn alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.labels import STATUS, unforged
from keepsaid.pipeline.context.layer import layer, left_out

_EPOCH = datetime.fromtimestamp(0, UTC)


def status(scene: Scene, chars_max: int) -> Layer:
    """The time of the turn and the side work of its lane; the work named last is left out first."""
    passing = scene.passing
    lines = [] if passing.now_ms is None else [_told(passing.now_ms)]
    room = chars_max - sum(map(len, lines))
    left = 0
    for line in passing.side_work:
        room -= len(line) + 1
        if room < 0 or left:
            left += 1
        else:
            lines.append(f"- {unforged(line)}")
    text = "\n".join((STATUS, *lines)) if lines else ""
    return layer("status", text, left_out(left, "line"))


def _told(now_ms: int) -> str:
    return f"It is {_EPOCH + timedelta(milliseconds=now_ms):%A %Y-%m-%d %H:%M} UTC."
