"""The cache: how much of a prompt the one before it in its lane had sent already, and why not all of it."""

from __future__ import annotations

from keepsaid.domain.prefix import Repeated, repeated
from keepsaid.domain.prompt import Json
from keepsaid.pipeline.context.trace import marks_in

_BROKEN = {
    "tools": "other tools are on offer",
    "policy": "the policy is another one",
    "identity": "the identity files changed",
    "personality": "the personality changed",
    "skills": "the skills changed",
    "workers": "the worker capabilities changed",
    "conversation": "the conversation is described otherwise",
    "bulletin": "the bulletin changed",
    "summary": "another summary stands for the older messages",
    "session_summary": "another summary stands for the other threads",
    "memory": "memory stands before the recent messages (context.order)",
    "recent": "the recent messages were cut to their budget",
}
_CUT = "older messages were cut off, by the window guard or a reset"


def compared(before: Json, after: Json) -> tuple[Repeated, str] | None:
    """What the later of two traces repeats of the earlier one's prompt, and why not everything; None without marks."""
    old, new = marks_in(before), marks_in(after)
    if not old or not new:
        return None
    found = repeated(old, new)
    return found, _why(found.broken, before, after)


def _why(broken: str, before: Json, after: Json) -> str:
    if broken in ("summary", "recent") and _of_lane(after, "floor") > _of_lane(before, "floor"):
        return _CUT
    return _BROKEN.get(broken, broken and f"{broken} changed")


def _of_lane(trace: Json, key: str) -> int:
    lane = trace.get("lane") if isinstance(trace, dict) else None
    value = lane.get(key) if isinstance(lane, dict) else None
    return value if isinstance(value, int) else 0
