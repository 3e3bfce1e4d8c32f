"""`keepsaid status`: what waits, what was answered, what is remembered, and whether a runtime is up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepsaid.interfaces.cli.output import age_ms, counted, duration, facts, show, tallied
from keepsaid.interfaces.cli.remote import Remote, running
from keepsaid.interfaces.cli.session import session

if TYPE_CHECKING:
    from keepsaid.app.reading import Reading
    from keepsaid.domain.views import Overview

_BATCHES = ("queued", "leased", "review", "dead")
_REPLIES = ("pending", "sending", "unknown", "dead")


def status() -> None:
    """Show what waits, what is remembered, and whether a runtime is up."""
    current = session()
    remote = running(current.home)
    where: dict[str, Any] = {"runtime": runtime_shape(remote), "home": str(current.home.data)}
    config = current.config()
    if not any(current.home.store(path).exists() for path in (config.buffer.path, config.memory.path)):
        sentence = f"{_up(remote)}: nothing was ever stored here."
        show({"sentence": sentence, "stored": False, **where}, sentence, facts([("home", where["home"])]))
        return
    overview, memories = current.read(_counts)
    shape = {"sentence": sentence_of(overview, remote), "stored": True, **shape_of(overview, memories), **where}
    show(shape, shape["sentence"], facts(_lines(shape)))


async def _counts(stores: Reading) -> tuple[Overview, dict[str, int]]:
    return await stores.views.overview(), await stores.memories.counts()


def runtime_shape(remote: Remote | None) -> dict[str, Any]:
    """The runtime as JSON."""
    return {"up": remote is not None, "pid": remote.pid if remote else None, "url": remote.url if remote else None}


def shape_of(overview: Overview, memories: dict[str, int]) -> dict[str, Any]:
    """The counts as JSON."""
    from keepsaid.interfaces.shapes import when  # noqa: PLC0415

    oldest = [depth.oldest_at for depth in overview.channels if depth.oldest_at is not None]
    usage = overview.usage
    return {
        "messages": overview.messages,
        "unrouted": {
            "total": sum(depth.unrouted for depth in overview.channels),
            "oldest_at": when(min(oldest, default=None)),
            "oldest_age_ms": age_ms(min(oldest, default=None)),
            "channels": [
                {
                    "channel": depth.channel,
                    "unrouted": depth.unrouted,
                    "oldest_at": when(depth.oldest_at),
                    "oldest_age_ms": age_ms(depth.oldest_at),
                }
                for depth in overview.channels
            ],
        },
        "batches": {**dict.fromkeys(_BATCHES, 0), **overview.batches},
        "outbox": {**dict.fromkeys(_REPLIES, 0), **overview.replies},
        "tasks": dict(overview.tasks),
        "episodes_due": overview.episodes_due,
        "memories": {"total": sum(memories.values()), "kinds": memories},
        "turns": dict(overview.turns),
        "tokens": {"in": usage.tokens_in, "out": usage.tokens_out},
        "cost_usd": None if usage.cost_micros is None else usage.cost_micros / 1_000_000,
    }


def sentence_of(overview: Overview, remote: Remote | None) -> str:
    """One sentence of state."""
    batches, replies = overview.batches, overview.replies
    wrong = [
        counted(batches.get("dead", 0), "dead batch", "dead batches"),
        counted(batches.get("review", 0), "batch to review", "batches to review"),
        counted(replies.get("dead", 0), "reply that could not be delivered", "replies that could not be delivered"),
    ]
    wrong = [said for said in wrong if not said.startswith("0 ")]
    if wrong:
        return f"{_up(remote)}, and a person is needed: {', '.join(wrong)}."
    unrouted = sum(depth.unrouted for depth in overview.channels)
    waiting = batches.get("queued", 0) + batches.get("leased", 0)
    if not unrouted and not waiting:
        return f"{_up(remote)}: nothing waits."
    left = f"{counted(unrouted, 'message')} to route and {counted(waiting, 'batch', 'batches')} to answer"
    return f"{_up(remote)}: {left}." if remote else f"{_up(remote)}: {left}, kept for the next start."


def _up(remote: Remote | None) -> str:
    return f"Running at {remote.url} (pid {remote.pid})" if remote else "Not running"


def _lines(shape: dict[str, Any]) -> list[tuple[str, str]]:
    unrouted, tokens, cost = shape["unrouted"], shape["tokens"], shape["cost_usd"]
    lines = [("unrouted", f"{unrouted['total']:,}   oldest {duration(unrouted['oldest_age_ms'])}")]
    lines += [
        (f"  {depth['channel']}", f"{depth['unrouted']:,}   oldest {duration(depth['oldest_age_ms'])}")
        for depth in unrouted["channels"]
    ]
    lines += [
        ("batches", tallied(shape["batches"], _BATCHES)),
        ("outbox", tallied(shape["outbox"], _REPLIES)),
        ("tasks", tallied(shape["tasks"])),
        ("memory", f"{shape['memories']['total']:,}   {tallied(shape['memories']['kinds'])}"),
        ("episodes", f"{shape['episodes_due']:,} due"),
        ("turns", tallied(shape["turns"])),
        ("tokens", f"in {tokens['in']:,}   out {tokens['out']:,}   cost {_cost(cost)}"),
        ("home", shape["home"]),
    ]
    return lines


def _cost(cost: float | None) -> str:
    return "not known" if cost is None else f"${cost:.4f}"
