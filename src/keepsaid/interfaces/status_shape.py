"""The status of a home as JSON, the same by command, over HTTP and in the library."""

from __future__ import annotations

from typing import Any

from keepsaid.domain.ids import show, when
from keepsaid.domain.line import Line
from keepsaid.domain.views import RunningProcess
from keepsaid.interfaces.shapes import fields_of
from keepsaid.services.status import Status

_BATCHES = ("queued", "leased", "review", "dead")
_REPLIES = ("pending", "sending", "unknown", "dead")


def status_shape(status: Status) -> dict[str, Any]:
    """What both stores count, what comes next, and what is free on the disk."""
    seen, usage = status.overview, status.overview.usage
    last = status.history.runs[0].at if status.history.runs else None

    def oldest(at: int | None) -> dict[str, Any]:
        return {"oldest_at": when(at), "oldest_age_ms": status.age_ms(at)}

    channels = [{"channel": one.channel, "unrouted": one.unrouted, **oldest(one.oldest_at)} for one in seen.channels]
    depths = [
        {
            **fields_of(one, "channel", "unrouted", "queued", "leased", "review", "dead"),
            **oldest(one.waiting_since),
            "for_person": {"total": one.for_person, **oldest(one.person_at)},
        }
        for one in seen.channels
    ]
    first = min((one.oldest_at for one in seen.channels if one.oldest_at is not None), default=None)
    unrouted = {"total": sum(one.unrouted for one in seen.channels), **oldest(first), "channels": channels}
    return {
        "messages": seen.messages,
        "unrouted": unrouted,
        "channels": depths,
        "deferred": seen.deferred,
        "held": {"total": seen.held, "first": show("batch", seen.held_first) if seen.held else None},
        "batches": {**dict.fromkeys(_BATCHES, 0), **seen.batches},
        "outbox": {**dict.fromkeys(_REPLIES, 0), **seen.replies},
        "paused": [
            {**fields_of(one, "channel", "account", "conversation", "waiting"), "since": when(one.since)}
            for one in seen.paused
        ],
        "processes": [_process_shape(one) for one in seen.processes if one.kept_until],
        "tasks": dict(seen.tasks),
        "episodes_due": seen.episodes_due,
        "memories": {"total": sum(status.memories.values()), "kinds": dict(status.memories)},
        "turns": dict(seen.turns),
        "tokens": {"in": usage.tokens_in, "out": usage.tokens_out},
        "cost_usd": None if usage.cost_micros is None else usage.cost_micros / 1_000_000,
        "backlog": {"waiting": status.backlog.waiting, **oldest(status.backlog.oldest_at)},
        "pruned": {
            "messages": status.history.messages,
            "last_run_at": when(last),
            "last_run_age_ms": status.age_ms(last),
        },
        "disk": {"free_bytes": status.host.free_bytes, "floor_bytes": status.floor_bytes},
        "server": status.host.server,
        "lines": [_line_shape(one) for one in status.host.lines],
        "schedules": {
            "next_at": when(status.next_due),
            "disabled": [show("schedule", one) for one in status.disabled],
        },
        "tools_waiting": dict(status.host.tools_waiting),
        "tool_servers_unreachable": dict(status.host.unreachable),
        "extensions_quarantined": dict(status.host.quarantined),
        "extensions_noted": dict(status.host.noted),
        "extraction_parked": [show("session", one.session_id) for one in status.parked],
        "events_undelivered": len(status.undelivered),
        "replies_unfetched": {"total": status.unfetched.waiting, **oldest(status.unfetched.oldest_at)},
        "attention": [{"what": one.what, "command": one.command} for one in status.concerns()],
    }


def _line_shape(one: Line) -> dict[str, Any]:
    times = {
        "since": when(one.since),
        "last_ok": when(one.last_ok or None),
        "next_try_at": when(one.next_try_at or None),
    }
    return {**fields_of(one, "channel", "account", "reason"), "state": one.state.value, **times}


def _process_shape(one: RunningProcess) -> dict[str, Any]:
    times = {"started_at": when(one.started_at), "kept_until": when(one.kept_until)}
    return {**fields_of(one, "owner", "leads"), "silent": one.is_silent, **times}
