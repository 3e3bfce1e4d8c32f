"""`keepsaid memory`: searches, lists, shows, adds, shares, flags, audits and maintains memories."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.ids import show
from keepsaid.domain.maintenance import LOOSE, AuditFinding, AuditProblem, Fix, Holdings, Outstanding, UpkeepTask
from keepsaid.domain.memory import IMPORTANCE, Kind, Memory, NewMemory, Recalled
from keepsaid.domain.memory import OWNER as OWNER_NAME
from keepsaid.domain.visibility import MemoryShared, ShareReach
from keepsaid.errors import InputError
from keepsaid.interfaces.cli import console, memory_changes, program, remote
from keepsaid.interfaces.cli.memory_changes import LIST, OWNER
from keepsaid.interfaces.shapes import Shape, holdings_shape, memory_shape, recalled_shape, widened_shape
from keepsaid.memory.maintenance import UNUSED_DAYS, Audit, AuditReport
from keepsaid.text.normal import counted
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid.ports.runtime import Redactor


def audit(
    unused_days: Annotated[
        int, typer.Option(min=1, help="Report memories learned this many days ago that no turn was shown.")
    ] = UNUSED_DAYS,
) -> None:
    """Check all memories for problems and name the command that solves each. Nothing is changed.

    Duplicates, contradictions, what is over and still told, what was never recalled, secrets (by id and kind, never
    their text), what leads to nothing, and what the agent learned from its own words.

    The exit code is 0 when all is well, and 5 when there is something to put right.
    """
    from keepsaid.app.redaction import redactor_of  # noqa: PLC0415

    redactor = redactor_of(console.session().config())

    async def looked(stores: console.Stores) -> AuditReport:
        auditing, trails = stores.memories.auditing, stores.views.trails
        return await Audit(auditing, trails, redactor, stores.clock).report(unused_days)

    report = console.session().read(looked) or AuditReport()
    checks = [_shape(trouble, report, redactor) for trouble in AuditProblem]
    total = sum(report.counts.values())
    sentence = "All is well." if report.clean else f"{counted(total, 'thing')} to put right."
    lines = (line for check in checks for line in _lines(check))
    console.show({"sentence": sentence, "checks": checks}, sentence, *lines)
    if not console.session().stored():
        console.say(console.NOTHING)
    if not report.clean:
        raise typer.Exit(program.WARNINGS)


def _shape(trouble: AuditProblem, report: AuditReport, redactor: Redactor) -> Shape:
    cases = [
        {"ids": [show("memory", one) for one in case.ids], "what": case.what, "fix": command(case, redactor)}
        for case in report.cases[trouble]
    ]
    return {"trouble": str(trouble), "count": report.counts[trouble], "cases": cases}


def command(case: AuditFinding, redactor: Redactor) -> str:
    """The command line that puts a case right; it repeats no secret."""
    ids = [show("memory", one) for one in case.ids]
    text, value = redactor.redacted(case.text), redactor.redacted(case.value)
    arguments = {
        Fix.MERGE: ids,
        Fix.EDIT: [*ids[:1], text, *(["--value", value] if value else [])],
        Fix.MAINTAIN: [],
        Fix.ARCHIVE: ids,
        Fix.FORGET: [*ids, "--yes"],
    }[case.fix]
    return shlex.join(["keepsaid", "memory", case.fix, *arguments])


def _lines(check: Shape) -> list[str]:
    lines = [f"{'warn' if check['count'] else 'ok':5} {check['trouble']}  {check['count']}"]
    for case in check["cases"]:
        what = f"  {case['what']}" if case["what"] else ""
        lines += [f"      {' '.join(case['ids'])}{what}", f"      fix: {case['fix']}"]
    return lines


_WHAT = {
    UpkeepTask.FADE: ("memory to fade", "memories to fade"),
    UpkeepTask.ENDED: ("expired memory", "expired memories"),
    UpkeepTask.BULLETINS: ("outdated bulletin", "outdated bulletins"),
    UpkeepTask.EDGES: ("orphaned association", "orphaned associations"),
    UpkeepTask.MENTIONS: ("orphaned mention", "orphaned mentions"),
    UpkeepTask.SOURCES: ("orphaned source", "orphaned sources"),
    UpkeepTask.STATEMENTS: ("orphaned statement", "orphaned statements"),
    UpkeepTask.CHAINS: ("memory whose successor is gone", "memories whose successor is gone"),
    UpkeepTask.PIECES: ("orphaned piece", "orphaned pieces"),
    UpkeepTask.VECTORS: ("orphaned vector", "orphaned vectors"),
    UpkeepTask.ENTITIES: ("unused entity", "unused entities"),
    UpkeepTask.SPACES: ("vector of a former model", "vectors of former models"),
}


def maintain(dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False) -> None:
    """Run the nightly upkeep of memory now: unused memories fade, orphaned rows are removed.

    It goes on where it was broken off, and running it twice at the same time changes nothing more.
    """
    if dry_run:
        _would()
        return
    told, _ = remote.post("/v1/memories/maintain")
    while not (told["over"] or told["stopping"]):
        told = _added(told, remote.post("/v1/memories/maintain")[0])
    faded, gone = told["changed"][UpkeepTask.FADE], told["archived"]
    loose = sum(told["changed"][task] for task in (*LOOSE, UpkeepTask.SPACES))
    ends = f"{gone} archived, {loose} loose ends removed, {counted(told['related'], 'association')} found"
    ends += f", {counted(told['ruled'], 'pair')} judged" if told["ruled"] else ""
    console.show(told, f"maintained  {counted(faded, 'memory', 'memories')} faded, {ends}")
    if told["stopping"]:
        console.say("the runtime is stopping; the rest is done in its next night, or by: keepsaid memory maintain")


def _added(before: Shape, piece: Shape) -> Shape:
    changed = {task: count + piece["changed"][task] for task, count in before["changed"].items()}
    longest = max(before["longest_ms"], piece["longest_ms"])
    sums = {name: before[name] + piece[name] for name in ("archived", "related", "ruled", "steps")}
    return {**piece, **sums, "changed": changed, "longest_ms": longest}


def _would() -> None:
    from keepsaid.app.memory import maintenance_of  # noqa: PLC0415

    config = console.session().config()

    async def found(stores: console.Stores) -> Outstanding:
        return await maintenance_of(config, stores.memories, stores.clock, (stores.embedding, None)).outstanding()

    there = console.session().read(found) or Outstanding()
    told = [counted(there.found.get(task, 0), *names) for task, names in _WHAT.items()]
    told.insert(1, f"{there.archived} of them to be archived")
    shape = {"found": {str(task): count for task, count in there.found.items()}, "archived": there.archived}
    console.show({**shape, "dry_run": True}, "\n".join(told))
    console.say("try: keepsaid memory maintain")


def stats() -> None:
    """Count the memories, and show when upkeep last ran."""
    there = console.session().read(lambda stores: stores.memories.upkeep.holdings()) or Holdings({}, {}, {}, {})
    shape = holdings_shape(there)
    counts = {name: [f"{n:,} {what}" for what, n in shape[name].items()] for name in ("kinds", "states", "scopes")}
    lines = [(name, ", ".join(said) or "none") for name, said in counts.items()]
    lines += [(name, f"{count:,}") for name, count in there.counts.items()]
    lines.append(("maintained", shape["maintained_at"] or "never"))
    console.show(shape, console.facts(lines, _FIELD_WIDTH))
    if not there.counts:
        console.say(console.NOTHING)


def flag_memory(
    memory: Annotated[str, typer.Argument(help="A memory that a turn was shown: mem_...")],
    turn: Annotated[str, typer.Option(help="The turn that was shown it: trn_...; `keepsaid why` names it.")],
    undo: Annotated[bool, typer.Option("--undo", help="Withdraw the mark; the memory can be recalled again.")] = False,
) -> None:
    """Mark a memory as wrong for a turn; it is left out of the next turns in that lane.

    The memory stays, and searches find it. What you said is kept, and `keepsaid why` shows it.
    """
    hint = "keepsaid why"
    memory = console.name_of("memory", memory, hint, f"{memory} names no memory")
    turn = console.name_of("turn", turn, hint, f"{turn} names no turn")
    if not remote.post(f"/v1/memories/{memory}/wrong", {"turn": turn, "undo": undo})[0]["done"]:
        what = "was not said to be wrong for" if undo else "was not shown to"
        raise console.refused(f"{memory} {what} {turn}", f"keepsaid why --memory {memory}")
    told = "may come to mind there again" if undo else "is left out there from the next turn on"
    console.show({"memory": memory, "turn": turn, "wrong": not undo}, f"{memory}  {told}")


_TO = ", ".join(ShareReach)


def share_memory(
    memory: Annotated[str, typer.Argument(help="A memory: mem_...")],
    to: Annotated[str, typer.Option(help=f"Where it becomes visible: {_TO}.")],
    reason: Annotated[str, typer.Option(help="Reason; stored with the memory.")],
) -> None:
    """Make a memory visible in its whole conversation, in its person's direct chats, or everywhere.

    Whoever hears it now hears it still. What came from outside stays in its lane.
    """
    named = console.name_of("memory", memory, LIST, f"{memory} names no memory")
    told = remote.post(f"/v1/memories/{named}/widen", {"to": to, "reason": reason})[0]["widened"]
    changed = "already has this scope" if told["before"] == told["after"] else f"was {told['before']}"
    console.show({"memory": named, "widened": told}, f"{named}  {told['after']}  ({changed})")


app = typer.Typer(help="Search, correct, share and delete memories.", rich_markup_mode=None)
memory_changes.add_to(app)
_KINDS = ", ".join(Kind)
_ADDED = ", ".join(str(kind) for kind in IMPORTANCE)
_FIELD_WIDTH = 14


@frozen
class SearchOptions:
    """A search as the options ask for it."""

    query: Annotated[str, typer.Argument(help="Search text.")]
    limit: console.Limit = 10
    archived: Annotated[bool, typer.Option("--archived", help="Search archived memories instead.")] = False
    kind: Annotated[str, typer.Option(help=f"Only memories of this kind: {_KINDS}.")] = ""
    person: Annotated[str, typer.Option(help="Only what this person said, or what is about this person.")] = ""
    since: Annotated[str, typer.Option(help="Only what was said since a day (2026-05-04) or a time, UTC.")] = ""
    until: Annotated[str, typer.Option(help="Only what was said until the end of a day, or until a time, UTC.")] = ""
    as_of: Annotated[str, typer.Option(help="Only what was true then: a day (2026-05-04) or a time, UTC.")] = ""


def _search(asked: SearchOptions) -> None:
    """Search memories, best match first.

    Memories that match by themselves come first; of these the current ones. Last come messages that only stand next to
    messages that match, marked "(neighbour)", and questions. STATE is active, superseded, expired, merged or archived;
    UNTIL is the day on which the memory stopped being true. With -v the list also has the score, and the search that
    found each memory.
    """
    from keepsaid.memory.recall.recollection import NO_EMBEDDER  # noqa: PLC0415 - `--help` needs no search
    from keepsaid.services.memories import SearchRequest, filters_of  # noqa: PLC0415

    try:
        request = SearchRequest(asked.query, asked.limit, filters_of(asdict(asked)), asked.archived)
        request.check()
    except InputError as error:
        raise typer.BadParameter(error.what.replace("as_of", "--as-of")) from error
    if (other := remote.elsewhere()) is not None:
        found = other.get("/v1/memories", **{name: str(value) for name, value in asdict(asked).items() if value})
    else:
        recalled = console.session().read(lambda stores: stores.search.search(request))
        found = recalled_shape(recalled or Recalled(()), console.now_ms())
    more = ("SCORE", "LEG") if console.session().verbose else ()
    headings = (*more, "ID", "STATE", "UNTIL", "KIND", "MEMORY")
    rows = tuple(map(_hit_cells, found["hits"]))
    console.show(found, console.Table(headings, rows if more else tuple(row[2:] for row in rows)))
    for missing in found["missing"]:
        if missing != NO_EMBEDDER:
            console.say(f"left out: {missing}")
    if not found["hits"]:
        by_words = "; memories are found by their words alone: keepsaid models pull adds finding by meaning"
        said = f"nothing matches{by_words if NO_EMBEDDER in found['missing'] else ''}"
        console.say(said if other is not None or console.session().stored() else console.NOTHING)


app.command("search")(console.command_of(SearchOptions, _search))


@app.command("ls")
def ls(
    kind: Annotated[str | None, typer.Option(help=f"Only memories of this kind: {_KINDS}.")] = None,
    limit: console.Limit = 20,
) -> None:
    """List memories, newest first.

    SCOPE says where it is visible: in a person's direct chats, in a conversation, in one lane of it, or everywhere.
    `memory show` names the person or conversation.
    """
    console.check_choice("--kind", kind, Kind)
    kinds = () if kind is None else (Kind(kind),)
    found = console.session().read(lambda stores: stores.memories.find(OWNER, kinds, limit)) or ()
    shape, headings = (
        {"memories": [memory_shape(memory, console.now_ms()) for memory in found]},
        ("ID", "KIND", "AGE", "FROM", "SCOPE", "MEMORY"),
    )
    console.show_rows(shape, headings, map(_cells, found), "nothing is remembered yet", ("FROM", "AGE", "SCOPE"))
    console.say_more(len(found), limit)


_SHORT = {Kind.THREAD_SUMMARY: "summary", Kind.SESSION_SUMMARY: "summary", Kind.THREAD_STATE: "state"}
"""Names of kinds that would make a table wider than 80 columns."""


def _hit_cells(hit: Shape) -> tuple[str, ...]:
    memory = hit["memory"]
    until = (memory["valid_to"] or "-").partition("T")[0]
    kind = _SHORT.get(memory["kind"], memory["kind"])
    found = f"{hit['score']:.3f}", f"{hit['leg']} #{hit['rank']}"
    mark = "(neighbour) " if hit.get("neighbour") else ""
    return (*found, memory["id"], memory["state"], until, kind, mark + memory["text"])


def _cells(memory: Memory) -> tuple[str, ...]:
    new = memory.new
    scope = new.scope.partition(":")[0]
    return show("memory", memory.id), str(new.kind), console.age(new.said_at), _speaker(new), scope, new.text


def _speaker(new: NewMemory) -> str:
    """Who said it; another identity than the owner that is called so is named with its channel."""
    if new.speaker == OWNER_NAME and new.speaker_id not in ("", OWNER_NAME):
        return f"{new.speaker} ({new.speaker_id.partition(':')[0]})"
    return new.speaker or "-"


@app.command("show")
def show_one(memory: Annotated[str, typer.Argument(help="A memory: mem_...")]) -> None:
    """Show one memory, its sources, and where it is visible."""
    number = console.id_of("memory", memory, LIST)

    async def named(stores: console.Stores) -> tuple[Memory | None, Sequence[MemoryShared]]:
        return await stores.memories.get(OWNER, number), await stores.memories.sharing.list_shares(OWNER, number)

    found, widened = console.session().read(named) or (None, ())
    if found is None:
        raise console.refused(f"there is no memory {memory}", LIST)
    shape = {**memory_shape(found, console.now_ms()), "widened": [widened_shape(one) for one in widened]}
    lines = [(field, _render_field(value)) for field, value in shape.items() if field != "text"]
    console.show({"memory": shape}, found.text, console.facts(lines, _FIELD_WIDTH))


def _render_field(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "; ".join(f"from {one['before']} by {one['by']}: {one['reason']}" for one in value)
    return ", ".join(map(str, value)) if isinstance(value, list) else console.render_value(value)


@app.command("add")
def add(
    text: Annotated[str, typer.Argument(help="Text of the memory; - reads stdin.")],
    kind: Annotated[str, typer.Option(help=f"Kind: {_ADDED}.")] = "fact",
) -> None:
    """Add a memory; it is visible in your direct chats. Secrets in it are left out."""
    console.check_choice("--kind", kind, IMPORTANCE)
    said = console.from_stdin() if text == "-" else text
    noted, _ = remote.post("/v1/memories", {"text": said, "kind": kind})
    added, left_out, lifted = str(noted["id"]), dict(noted["redacted"]), bool(noted.get("lifted"))
    console.show({"id": added, "redacted": left_out, "lifted": lifted}, f"{added}  remembered")
    if lifted:
        console.say("this had been forgotten; because you asked for it, it may be remembered again from now on")
    if left_out:
        kinds = ", ".join(counted(n, kind) for kind, n in left_out.items())
        console.say(f"left out: {kinds}; memory keeps no secrets")


app.command("flag")(flag_memory)
app.command("audit")(audit)
app.command("maintain")(maintain)
app.command("stats")(stats)
app.command("share")(share_memory)
