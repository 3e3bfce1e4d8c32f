"""Again: what the trace of a turn says that is tried once more, when its context has changed since."""

from __future__ import annotations

from keepsaid.domain.prompt import Json
from keepsaid.pipeline.context.cache import compared

LEFT_OUT = "left_out"
_SHOWN = ("layers", "marks", "lane", "factor", "taint")
_ELSE = "something that holds for this turn alone changed"


def told_again(recorded: Json, now: dict[str, Json]) -> Json:
    """The trace of an attempt: as recorded while the prompt is the same, else with what it shows now, and why.

    What came to mind, the focus and what is quoted are shown again as the first attempt was shown them.
    """
    if not isinstance(recorded, dict):
        return now
    found = compared(recorded, now)
    if found is None or recorded.get("marks") == now["marks"]:
        return recorded
    kept = {key: value for key, value in recorded.items() if key != LEFT_OUT}
    shown = {key: now[key] for key in (*_SHOWN, LEFT_OUT) if key in now}
    return {**kept, **shown, "changed": found[1] or _ELSE}


def left_out_of(trace: Json) -> tuple[str, ...]:
    """The parts that were left out of a prompt because they were not ready in time: `memory took longer than 5 s`."""
    told = trace.get(LEFT_OUT) if isinstance(trace, dict) else None
    return tuple(map(str, told)) if isinstance(told, list) else ()


def changed_since(trace: Json) -> str:
    """What of the prompt changed between two attempts of the turn, in words; "" for nothing."""
    told = trace.get("changed") if isinstance(trace, dict) else None
    return told if isinstance(told, str) else ""
