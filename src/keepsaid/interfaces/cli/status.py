"""`keepsaid status`: what waits, what was answered, what is remembered, and whether a runtime is up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keepsaid.domain import ids
from keepsaid.interfaces.cli.console import age_ms, counted, duration, facts, session, show, tallied
from keepsaid.interfaces.cli.remote import Remote, running
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid.app.stores import ReadOnlyStores
    from keepsaid.config import Home
    from keepsaid.domain.views import Overview


_BATCHES = ("queued", "leased", "review", "dead")
_REPLIES = ("pending", "sending", "unknown", "dead")
_MEGABYTE = 1_000_000
_DISABLED_MAX = 100


def status() -> None:
    """Show what waits, what is remembered, and whether a runtime is up."""
    current = session()
    life = life_of(current.home)
    where: dict[str, Any] = {"runtime": _runtime_shape(life), "home": str(current.home.data)}
    found = current.read(_read)
    if found is None:
        sentence = f"{life.description}: nothing was ever stored here."
        show({"sentence": sentence, "stored": False, **where}, sentence, facts([("home", where["home"])]))
        return
    overview, counts, schedules = found
    shape = {"sentence": sentence_of(overview, life), "stored": True, **counts, "disk": _disk_shape(), **where}
    shape |= {"schedules": schedules, "tools_waiting": _tools_waiting()}
    shape["sentence"] += "".join(f" Warning: {one}." for one in _warnings(shape))
    show(shape, shape["sentence"], facts(_lines(shape)))


async def _read(stores: ReadOnlyStores) -> tuple[Overview, dict[str, Any], dict[str, Any]]:
    """The overview, what both stores count, and the schedules: the next, and those that failed too often."""
    views = stores.views
    overview, memories = await views.overview(), await stores.memories.counts()
    backlog, history = await views.backlog(), await views.prune_history()
    disabled = await views.schedules.schedules(("disabled",), 0, _DISABLED_MAX)
    last = history.runs[0].at if history.runs else None
    pruned = {"messages": history.messages, "last_run_at": ids.when(last), "last_run_age_ms": age_ms(last)}
    counts = {"backlog": {"waiting": backlog.waiting, **_oldest(backlog.oldest_at)}, "pruned": pruned}
    due = ids.when(await views.schedules.next_due())
    schedules = {"next_at": due, "disabled": [ids.show("schedule", one.id) for one in disabled]}
    return overview, {**shape_of(overview, memories), **counts}, schedules


def _tools_waiting() -> dict[str, int]:
    """How many tools of each server are not offered, because their text waits for the owner's acceptance."""
    home, config = session().home, session().config()
    if not config.tools.mcp:
        return {}
    from keepsaid.app.channels import waiting_in  # noqa: PLC0415 - few have such servers

    return {server: len(tools) for server, tools in waiting_in(home, config).items()}


def _oldest(at: int | None) -> dict[str, Any]:
    return {"oldest_at": ids.when(at), "oldest_age_ms": age_ms(at)}


def _disk_shape() -> dict[str, Any]:
    from keepsaid.app.stores import free_space  # noqa: PLC0415

    home, config = session().home, session().config()
    floor = config.buffer.min_free_disk_mb * _MEGABYTE
    return {"free_bytes": free_space(home, config), "floor_bytes": floor}


def _warnings(shape: dict[str, Any]) -> Iterator[str]:
    """What is beyond its limit now; the runtime has told it in the log."""
    buffer, backlog, disk = session().config().buffer, shape["backlog"], shape["disk"]
    if backlog["waiting"] >= buffer.warn_count:
        yield f"{backlog['waiting']:,} messages wait (buffer.warn_count {buffer.warn_count:,})"
    if (backlog["oldest_age_ms"] or 0) >= buffer.warn_age_s * 1000:
        yield f"the oldest waits {duration(backlog['oldest_age_ms'])} (buffer.warn_age_s {buffer.warn_age_s:g})"
    if shape["schedules"]["disabled"]:
        many = counted(len(shape["schedules"]["disabled"]), "schedule")
        yield f"{many} failed too often and will not come again (keepsaid schedule ls)"
    for server, count in shape["tools_waiting"].items():
        yield f"{counted(count, 'tool')} of {server} not offered until you accept (keepsaid tools accept {server})"
    if disk["free_bytes"] < disk["floor_bytes"]:
        yield "too little disk is free to take messages in (buffer.min_free_disk_mb)"


@frozen
class HomeHolder:
    """Who works in a home: a runtime that listens, or a process that only holds the lock; `holder` is its number."""

    remote: Remote | None
    holder: int | None

    @property
    def description(self) -> str:
        """The beginning of a sentence that says which process uses the home."""
        if self.remote is not None:
            return f"Running at {self.remote.url} (pid {self.remote.pid})"
        if self.holder is None:
            return "Not running"
        return f"Process {self.holder or 'unknown'} holds this home and does not listen"


def life_of(home: Home) -> HomeHolder:
    """Who works in a home now."""
    from keepsaid.app.stores import held_by  # noqa: PLC0415

    remote = running(home)
    return HomeHolder(remote, remote.pid if remote else held_by(home))


def _runtime_shape(life: HomeHolder) -> dict[str, Any]:
    remote = life.remote
    return {"up": remote is not None, "pid": life.holder, "url": remote.url if remote else None}


def shape_of(overview: Overview, memories: dict[str, int]) -> dict[str, Any]:
    """The counts as JSON."""
    oldest = [depth.oldest_at for depth in overview.channels if depth.oldest_at is not None]
    usage = overview.usage
    return {
        "messages": overview.messages,
        "unrouted": {
            "total": sum(depth.unrouted for depth in overview.channels),
            **_oldest(min(oldest, default=None)),
            "channels": [
                {"channel": depth.channel, "unrouted": depth.unrouted, **_oldest(depth.oldest_at)}
                for depth in overview.channels
            ],
        },
        "deferred": overview.deferred,
        "held": {"total": overview.held, "first": ids.show("batch", overview.held_first) if overview.held else None},
        "batches": {**dict.fromkeys(_BATCHES, 0), **overview.batches},
        "outbox": {**dict.fromkeys(_REPLIES, 0), **overview.replies},
        "tasks": dict(overview.tasks),
        "episodes_due": overview.episodes_due,
        "memories": {"total": sum(memories.values()), "kinds": memories},
        "turns": dict(overview.turns),
        "tokens": {"in": usage.tokens_in, "out": usage.tokens_out},
        "cost_usd": None if usage.cost_micros is None else usage.cost_micros / 1_000_000,
    }


def sentence_of(overview: Overview, life: HomeHolder) -> str:
    """One sentence of state."""
    batches, replies = overview.batches, overview.replies
    wrong = [
        counted(batches.get("dead", 0), "dead batch", "dead batches"),
        counted(batches.get("review", 0), "batch to review", "batches to review"),
        counted(replies.get("dead", 0), "reply that could not be delivered", "replies that could not be delivered"),
    ]
    if wrong := [said for said in wrong if not said.startswith("0 ")]:
        return f"{life.description}, and a person is needed: {', '.join(wrong)}."
    unrouted = sum(depth.unrouted for depth in overview.channels)
    waiting = batches.get("queued", 0) + batches.get("leased", 0)
    if not unrouted and not waiting:
        return f"{life.description}: nothing waits."
    left = f"{counted(unrouted, 'message')} to route and {counted(waiting, 'batch', 'batches')} to answer"
    if overview.deferred:
        left += f"; {counted(overview.deferred, 'batch waits', 'batches wait')} for an outage to end"
    if overview.held:
        left += f"; {counted(overview.held, 'batch waits', 'batches wait')} to run alone after crashes"
    return f"{life.description}: {left}" + ("." if life.holder is not None else ", kept for the next start.")


def _lines(shape: dict[str, Any]) -> list[tuple[str, str]]:
    unrouted, tokens, cost = shape["unrouted"], shape["tokens"], shape["cost_usd"]
    backlog, held, pruned = shape["backlog"], shape["held"], shape["pruned"]
    cost = "not known" if cost is None else f"${cost:.4f}"
    ago = "never" if pruned["last_run_age_ms"] is None else f"{duration(pruned['last_run_age_ms'])} ago"
    lines = [("waiting", f"{backlog['waiting']:,}   oldest {duration(backlog['oldest_age_ms'])}")]
    lines += [("unrouted", f"{unrouted['total']:,}   oldest {duration(unrouted['oldest_age_ms'])}")]
    lines += [
        (f"  {depth['channel']}", f"{depth['unrouted']:,}   oldest {duration(depth['oldest_age_ms'])}")
        for depth in unrouted["channels"]
    ]
    return [
        *lines,
        ("batches", tallied(shape["batches"], _BATCHES)),
        *([("  held", f"{held['total']:,}   keepsaid inbox why {held['first']}")] if held["total"] else []),
        ("outbox", tallied(shape["outbox"], _REPLIES)),
        ("tasks", tallied(shape["tasks"])),
        ("memory", f"{shape['memories']['total']:,}   {tallied(shape['memories']['kinds'])}"),
        ("episodes", f"{shape['episodes_due']:,} due"),
        ("schedules", f"next {shape['schedules']['next_at'] or '-'}"),
        ("turns", tallied(shape["turns"])),
        ("tokens", f"in {tokens['in']:,}   out {tokens['out']:,}   cost {cost}"),
        ("pruned", f"{pruned['messages']:,} messages   last run {ago}"),
        ("disk", f"{shape['disk']['free_bytes'] / 1e9:.1f} GB free"),
        ("home", shape["home"]),
    ]
