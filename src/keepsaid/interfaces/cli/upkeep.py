"""`keepsaid memory maintain` and `stats`: memory is looked after, and what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.upkeep import LOOSE, Holdings, Outstanding, Task
from keepsaid.interfaces.cli.output import NOTHING, counted, facts, show
from keepsaid.interfaces.cli.remote import either
from keepsaid.interfaces.cli.session import say, session
from keepsaid.interfaces.shapes import holdings_shape, maintained_shape

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.app.stores import Reading

_LIMIT_MS = 5_000
_WHAT = {
    Task.FADE: ("memory to fade", "memories to fade"),
    Task.ENDED: ("memory whose time is over", "memories whose time is over"),
    Task.BULLETINS: ("bulletin of what holds no more", "bulletins of what holds no more"),
    Task.EDGES: ("loose association", "loose associations"),
    Task.MENTIONS: ("loose mention", "loose mentions"),
    Task.SOURCES: ("source of nothing", "sources of nothing"),
    Task.STATEMENTS: ("statement of nothing", "statements of nothing"),
    Task.CHAINS: ("memory whose follower is gone", "memories whose follower is gone"),
    Task.PIECES: ("piece of nothing", "pieces of nothing"),
    Task.VECTORS: ("vector of nothing", "vectors of nothing"),
    Task.ENTITIES: ("thing nobody mentions", "things nobody mentions"),
    Task.SPACES: ("vector of a former model", "vectors of former models"),
}


def maintain(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what there is to do.")] = False,
) -> None:
    """Look after memory now, as a runtime does every night: what nobody uses fades, what hangs loose goes.

    It goes on where it was broken off, and running it twice at the same time changes nothing more.
    """
    if dry_run:
        _would()
        return
    told: dict[str, Any] = {}
    while not (told.get("over") or told.get("stopping")):
        piece, _ = either(lambda remote: remote.post("/v1/memories/maintain"), _maintained)
        told = _added(told, dict(piece))
    faded, gone = told["changed"][Task.FADE], told["archived"]
    loose = sum(told["changed"][task] for task in (*LOOSE, Task.SPACES))
    ends = f"{gone} archived, {loose} loose ends removed, {counted(told['related'], 'association')} found"
    ends += f", {counted(told['ruled'], 'pair')} judged" if told["ruled"] else ""
    show(told, f"maintained  {counted(faded, 'memory', 'memories')} faded, {ends}")
    if told["stopping"]:
        say("the runtime is stopping; the rest is done in its next night, or by: keepsaid memory maintain")


async def _maintained(instance: Instance) -> dict[str, Any]:
    return maintained_shape(await instance.maintenance.run(_LIMIT_MS))


def _added(before: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    if not before:
        return piece
    changed = {task: count + piece["changed"][task] for task, count in before["changed"].items()}
    longest = max(before["longest_ms"], piece["longest_ms"])
    sums = {name: before[name] + piece[name] for name in ("archived", "related", "ruled", "steps")}
    return {**piece, **sums, "changed": changed, "longest_ms": longest}


def _would() -> None:
    async def found(stores: Reading) -> Outstanding:
        from keepsaid.app.memory import maintenance_of  # noqa: PLC0415

        return await maintenance_of(
            session().config(), stores.memories, stores.clock, (stores.embedding, None)
        ).outstanding()

    there = session().read(found, Outstanding())
    told = [counted(there.found.get(task, 0), *names) for task, names in _WHAT.items()]
    told.insert(1, f"{there.archived} of them to be archived")
    shape = {"found": {str(task): count for task, count in there.found.items()}, "archived": there.archived}
    show({**shape, "dry_run": True}, "\n".join(told))
    say("try: keepsaid memory maintain")


def stats() -> None:
    """Say what memory holds, and when it was last looked after."""

    async def held(stores: Reading) -> Holdings:
        return await stores.memories.upkeep.holdings()

    there = session().read(held, Holdings({}, {}, {}, {}))
    shape = holdings_shape(there)
    lines = [(name, _told(shape[name])) for name in ("kinds", "states", "scopes")]
    lines += [(name, f"{count:,}") for name, count in there.counts.items()]
    lines.append(("maintained", shape["maintained_at"] or "never"))
    show(shape, facts(lines, 14))
    if not there.counts:
        say(NOTHING)


def _told(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items()) or "none"
