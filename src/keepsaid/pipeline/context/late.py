"""Late: messages that waited too long are answered with a marker, which model and person can read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from keepsaid.domain.message import Message
from keepsaid.domain.prompt import Json
from keepsaid.domain.turn import Claimed
from keepsaid.pipeline.context.labels import RECEIVED

_KEY = "late_before"


def judged(claimed: Claimed, stale_ms: int, now_ms: int) -> Claimed:
    """The batch with the time before which its messages count as late; `stale_ms` 0 calls none late.

    A turn with finished steps keeps to what they were shown: a retry must send the same bytes. One that has none
    is judged anew, because the runtime may have been down meanwhile.
    """
    before = _cutoff(stale_ms, now_ms)
    if any(step.state == "finished" for step in claimed.steps):
        before = late_before(claimed.trace)
    return replace(claimed, late_before=before)


def late_before(trace: Json) -> int | None:
    """What a trace says of it."""
    before = trace.get(_KEY) if isinstance(trace, dict) else None
    return before if isinstance(before, int) else None


def noted(trace: Json, before: int | None) -> Json:
    """A trace that says it, for a retry and for `why`."""
    return {**trace, _KEY: before} if isinstance(trace, dict) else trace


def marked(message: Message, before: int | None) -> str:
    """The line above a late message; "" for one in time."""
    if before is None or message.received_at >= before:
        return ""
    return f"{RECEIVED} {_told(message.received_at)}, answered late]\n"


def owned_up(reply: str, claimed: Claimed, stale_ms: int, now_ms: int) -> str:
    """A reply that begins by naming when the oldest late message came; as it is when all were in time.

    It is judged at the end as well: a turn that began in time may have waited out days.
    """
    befores = [before for before in (claimed.late_before, _cutoff(stale_ms, now_ms)) if before is not None]
    late = [message.received_at for message in claimed.heard if befores and message.received_at < max(befores)]
    return f"[answered late: received {_told(min(late))}]\n\n{reply}" if late else reply


def _cutoff(stale_ms: int, now_ms: int) -> int | None:
    return now_ms - stale_ms if stale_ms else None


def _told(at: int) -> str:
    return f"{datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at):%Y-%m-%d %H:%M} UTC"
