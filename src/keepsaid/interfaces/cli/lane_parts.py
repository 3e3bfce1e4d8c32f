"""Sessions and open questions of a lane, as `keepsaid lanes show` tells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keepsaid.domain.ids import show as name
from keepsaid.domain.strand import strand_begun_by
from keepsaid.interfaces.cli.output import Table, one_line
from keepsaid.interfaces.shapes import when

if TYPE_CHECKING:
    from keepsaid.domain.lane import Lane
    from keepsaid.domain.session import Session
    from keepsaid.domain.slot import Slot
    from keepsaid.ports.store_views import BufferView

_OPENED = {
    "topic": "its messages name this topic",
    "reply": "its first message replies to one that is not known here",
    "root": "its messages name no topic and reply to nothing",
}


async def opened_because(views: BufferView, lane: Lane) -> str:
    """Why there is this lane; of a strand, why its first message began one."""
    first = strand_begun_by(lane)
    if first is None:
        return _OPENED.get(lane.key.partition(":")[0], "it was named so")
    story = await views.story(first)
    return (
        f"{name('message', first)}: {story.placed}" if story is not None else f"{name('message', first)}, pruned since"
    )


def session_table(sessions: Sequence[Session]) -> Table:
    """Sessions as given: when each began and ended and why, which records it covers, and its mark."""
    headings = ("SESSION", "BEGAN", "WHY", "ENDED", "WHY", "RECORDS", "TO COLLECT")
    return Table(headings, tuple(_session_row(one) for one in sessions))


def _session_row(one: Session) -> tuple[str, ...]:
    began, ended = when(one.started_at) or "-", when(one.ended_at) or "-"
    records = f"{one.first}-{one.last}" if one.last >= one.first else "-"
    mark = "-" if one.invalidated_at is None else f"to {one.invalidated_at} ({one.invalidated_reason})"
    return one.state, began, one.started_reason, ended, one.ended_reason or "-", records, mark


def session_shape(one: Session) -> dict[str, Any]:
    """A session in JSON."""
    return {
        "state": one.state,
        "started_at": when(one.started_at),
        "started_reason": one.started_reason,
        "active_at": when(one.active_at),
        "ended_at": when(one.ended_at),
        "ended_reason": one.ended_reason or None,
        "records": {"first": one.first, "last": one.last} if one.last >= one.first else None,
        "waits_for_collection": one.invalidated_at is not None,
        "collect_up_to": one.invalidated_at,
        "collect_reason": one.invalidated_reason or None,
    }


def slot_table(slots: Sequence[Slot]) -> Table:
    """Questions as given: whom each was asked, the type of its answer, and when it expires."""
    rows = ((one_line(one.question.text), _kind(one), one.person, when(one.expires_at) or "-") for one in slots)
    return Table(("QUESTION", "TYPE", "ASKED", "EXPIRES"), tuple(rows))


def _kind(slot: Slot) -> str:
    question = slot.question
    return f"{question.expected}: {', '.join(question.options)}" if question.options else str(question.expected)


def slot_shape(one: Slot) -> dict[str, Any]:
    """A question in JSON."""
    question = one.question
    told = {"question": question.text, "expected": str(question.expected), "options": list(question.options)}
    return {**told, "person": one.person, "opened_at": when(one.opened_at), "expires_at": when(one.expires_at)}
