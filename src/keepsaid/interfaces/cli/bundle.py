"""`keepsaid data export` and `import`: memory as a file, and memories of another home or program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain import message
from keepsaid.domain.bundle import ImportOutcome, ImportVerdict, Record
from keepsaid.errors import HomeError
from keepsaid.interfaces.cli.console import NOTHING, Table, check_choice, now_ms, say, session, show
from keepsaid.interfaces.cli.remote import Remote, either
from keepsaid.interfaces.running_memory import RunningMemory
from keepsaid.interfaces.transfer_shapes import Shape, export_shape, import_shape
from keepsaid.services import bundles, people
from keepsaid.services.importing import ImportRequest, LocalMemory, import_memories, preview_import
from keepsaid.services.imports import formats
from keepsaid.text.normal import counted

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.memory.importing import ImportReport

_SHOWN_MAX = 20
_LINES_MAX = 3
_FORMATS = " or ".join(bundles.FORMATS)


def export(
    target: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="The file to write, or a directory to put it in.")],
    form: Annotated[str, typer.Option("--format", help=f"{_FORMATS}: to be imported, or to be read.")] = "jsonl",
    person: Annotated[
        list[str] | None,
        typer.Option(metavar="PERSON", help="Only what is visible to this person: owner, or CHANNEL:ACCOUNT:SENDER."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Export all memories to one file, also beside a running instance.

    Vectors are left out: they are made again. The file is for you alone (mode 0600); it holds what people said.
    """
    from keepsaid.app.backups import note_backup  # noqa: PLC0415 - `--help` needs none of it

    check_choice("--format", form, bundles.FORMATS)
    written = session().read(
        lambda stores: bundles.export(stores.memories.bundles, target, form, person or (), force=force)
    )
    if written is None:
        raise HomeError(NOTHING, safe="Nothing was written.", hint="keepsaid chat")
    done = export_shape(written)
    note_backup(session().home, Path(done["file"]), now_ms())
    counts = (
        ", ".join(counted(n, _one_of(what), what) for what, n in done["counts"].items() if n) or "nothing is known yet"
    )
    show(done, f"exported  {done['file']}   {done['bytes'] / 1e6:.1f} MB   {counts}")
    if done["counts"]["tombstones"] and form == "jsonl":
        say("to import the tombstones too, copy forgotten.key from the data directory beside the exported file")


def _one_of(several: str) -> str:
    """The singular of what an export counts."""
    return {"memories": "memory", "summaries": "summary", "entities": "entity", "identities": "identity"}.get(
        several, several.removesuffix("s")
    )


def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A bundle of `data export`, or a file, zip or folder of another program."),
    ],
    source: Annotated[
        str,
        typer.Option("--from", "--format", help=f"Its format: {', '.join(formats.NAMES)}. Default: by its content."),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what each line would do.")] = False,
    trust: Annotated[
        str,
        typer.Option(
            help="Highest trust of what is imported: owner, known or external. Default: owner for a bundle, else known."
        ),
    ] = "",
    who: Annotated[
        list[str] | None,
        typer.Option(
            "--as", metavar="NAME=PERSON", help="The person for a name in the other program; `'*=owner'`: all others."
        ),
    ] = None,
) -> None:
    """Import memories from another home or another program. Existing memories stay as they are.

    Running it again changes nothing, and continues an import that was interrupted. A damaged file is refused whole.
    Lines that cannot be imported are counted by reason, and all others are imported. Imported messages are kept as
    episodes and are not answered; facts that the user plainly states in them are learned. Forgotten memories do not
    come back. What was forgotten in the other home stays out only if the forgotten.key of that home is beside the file.
    """
    from keepsaid.app.redaction import redactor_of  # noqa: PLC0415 - `--help` needs none of it
    from keepsaid.app.stores import session_reader  # noqa: PLC0415

    asked, now = _request(file, source, trust, who or []).reading(session_reader()), now_ms()
    redactor = redactor_of(session().config())

    def remotely(remote: Remote) -> ImportReport:
        async def post(path: str, fields: Mapping[str, object]) -> Any:
            return remote.post(path, json.dumps(fields).encode())

        return asyncio.run(import_memories(asked, RunningMemory(post), redactor, now))

    async def locally(instance: Instance) -> ImportReport:
        here = LocalMemory(instance.memories, instance.clock, instance.recorder.facts)
        return await import_memories(asked, here, instance.redactor, now)

    if dry_run:
        found = session().read(lambda stores: preview_import(asked, stores.memories.bundles, redactor, now))
        report = found or asyncio.run(preview_import(asked, _Empty(), redactor, now))
    else:
        report, _ = either(remotely, locally)
    _tell(import_shape(report, asked, dry_run=dry_run))


def _request(file: Path, source: str, trust: str, who: Sequence[str]) -> ImportRequest:
    check_choice("--format", source or None, formats.NAMES)
    check_choice("--trust", trust or None, message.Trust)
    persons: dict[str, str] = {}
    for one in who:
        name, equals, person = one.rpartition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{one!r} is not NAME=PERSON", param_hint="--as")
        persons[name] = people.person_in(person, session().config())
    return ImportRequest.of(file, source, trust, persons)


def _tell(told: Shape) -> None:
    outcomes = tuple(str(how).upper() for how in ImportOutcome)
    tables = [_counted("WOULD BE" if told["dry_run"] else "IMPORTED", outcomes, told["counts"])]
    if told["kinds"]:
        tables.append(_counted("KIND", outcomes, told["kinds"]))
    reasons = [(one["type"], one["outcome"], _lines_of(told, one), one["why"]) for one in told["reasons"]]
    if reasons:
        tables.append(Table(("TYPE", "", "LINES", "WHY"), tuple(reasons[:_SHOWN_MAX])))
    show(told, *tables)
    if len(reasons) > _SHOWN_MAX:
        say(f"and {counted(len(reasons) - _SHOWN_MAX, 'reason')} more; --json lists each line")
    if told["secrets"]:
        say(f"left out: the secrets of {counted(told['secrets'], 'memory', 'memories')}; memory keeps none")
    if told["dry_run"]:
        say("nothing was changed")


def _counted(heading: str, outcomes: Sequence[str], counts: Shape) -> Table:
    rows = [(what, *(f"{n:,}" for n in each.values())) for what, each in counts.items()]
    return Table((heading, *outcomes), tuple(rows))


def _lines_of(told: Shape, reason: Shape) -> str:
    """The first lines that were not imported for a reason, and how many more there are."""
    names = "type", "outcome", "why"
    found = (str(one["line"]) for one in told["told"] if all(one[name] == reason[name] for name in names))
    first = list(islice(found, _LINES_MAX))
    rest = reason["lines"] - len(first)
    return ", ".join(first) + (f" and {rest:,} more" if rest and first else f"{rest:,}" if rest else "")


class _Empty:
    """A home in which nothing was ever stored: everything is new there."""

    async def look(self, records: Sequence[Record]) -> Sequence[ImportVerdict]:
        return [ImportVerdict(ImportOutcome.NEW) for _ in records]

    async def key_print(self) -> str:
        return ""
