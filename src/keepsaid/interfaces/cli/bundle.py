"""`keepsaid data export` and `import`: memory as a file, and what another home or program knew."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain import bundle_lines, message
from keepsaid.domain.bundle import BundleEntry, ImportOutcome, ImportVerdict, Record
from keepsaid.errors import HomeError
from keepsaid.interfaces.cli.console import NOTHING, Table, check_choice, now_ms, say, session, show
from keepsaid.interfaces.cli.remote import Remote, either
from keepsaid.interfaces.shapes import Shape, export_shape, import_shape
from keepsaid.services import bundles, people
from keepsaid.services.importing import KEEPSAID, MEM0, ImportRequest, LocalMemory, import_memories, preview_import
from keepsaid.text.normal import counted

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.memory.importing import ImportReport

_SHOWN_MAX = 20
_LINES_MAX = 3
_SOURCES = (KEEPSAID, MEM0)
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
    file: Annotated[Path, typer.Argument(help="A bundle that `data export` made, or a JSON file of mem0.")],
    source: Annotated[str, typer.Option("--from", help=f"Who wrote it: {' or '.join(_SOURCES)}.")] = KEEPSAID,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what each line would do.")] = False,
    trust: Annotated[
        str,
        typer.Option(
            help="Highest trust of what is imported: owner, known or external. Default: owner; known for mem0."
        ),
    ] = "",
    who: Annotated[
        list[str] | None,
        typer.Option(
            "--as", metavar="NAME=PERSON", help="The person for a name in mem0; `'*=owner'` is for all others."
        ),
    ] = None,
) -> None:
    """Import memories from another home or from mem0. Existing memories stay as they are.

    Doing it again changes nothing, and goes on where it was broken off. A damaged file is refused whole. Lines that
    cannot be imported are named, and all others are imported. What was forgotten here does not come back. What was
    forgotten in the other home stays out only if the forgotten.key of that home is beside the file.
    """
    from keepsaid.app.redaction import redactor_of  # noqa: PLC0415 - `--help` needs none of it

    asked, now = _request(file, source, trust, who or []), now_ms()
    redactor = redactor_of(session().config())

    def remotely(remote: Remote) -> ImportReport:
        return asyncio.run(import_memories(asked, _There(remote), redactor, now))

    async def locally(instance: Instance) -> ImportReport:
        return await import_memories(asked, LocalMemory(instance.memories, instance.clock), instance.redactor, now)

    if dry_run:
        found = session().read(lambda stores: preview_import(asked, stores.memories.bundles, redactor, now))
        report = found or asyncio.run(preview_import(asked, _Empty(), redactor, now))
    else:
        report, _ = either(remotely, locally)
    _tell(import_shape(report, asked, dry_run=dry_run))


def _request(file: Path, source: str, trust: str, who: Sequence[str]) -> ImportRequest:
    check_choice("--from", source, _SOURCES)
    trust = trust or str(message.Trust.KNOWN if source == MEM0 else message.Trust.OWNER)
    check_choice("--trust", trust, message.Trust)
    persons: dict[str, str] = {}
    for one in who:
        name, equals, person = one.rpartition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{one!r} is not NAME=PERSON", param_hint="--as")
        persons[name] = people.person_in(person, session().config())
    return ImportRequest(file, source, message.Trust(trust), persons)


def _tell(told: Shape) -> None:
    rows = [(what, *(f"{n:,}" for n in counts.values())) for what, counts in told["counts"].items()]
    headings = "WOULD BE" if told["dry_run"] else "IMPORTED", *(str(how).upper() for how in ImportOutcome)
    reasons = _reasons(told["told"])
    why = [Table(("TYPE", "", "LINES", "WHY"), tuple(reasons[:_SHOWN_MAX]))] if reasons else []
    show(told, Table(headings, tuple(rows)), *why)
    if told["not_told"]:
        say(f"and {counted(told['not_told'], 'line')} more")
    if len(reasons) > _SHOWN_MAX:
        say(f"and {counted(len(reasons) - _SHOWN_MAX, 'reason')} more; --json lists each line")
    if told["secrets"]:
        say(f"left out: the secrets of {counted(told['secrets'], 'memory', 'memories')}; memory keeps none")
    if told["dry_run"]:
        say("nothing was changed")


def _reasons(told: Sequence[Shape]) -> list[tuple[str, ...]]:
    """Why lines were not taken over, each reason once with the first lines it is about."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    for one in told:
        lines.setdefault((one["type"], one["outcome"], one["why"]), []).append(str(one["line"]))
    return [(what, outcome, _few(numbers), why) for (what, outcome, why), numbers in lines.items()]


def _few(numbers: Sequence[str]) -> str:
    rest = len(numbers) - _LINES_MAX
    return ", ".join(numbers[:_LINES_MAX]) + (f" and {rest:,} more" if rest > 0 else "")


class _Empty:
    """A home in which nothing was ever stored: everything is new there."""

    async def look(self, records: Sequence[Record]) -> Sequence[ImportVerdict]:
        return [ImportVerdict(ImportOutcome.NEW) for _ in records]

    async def key_print(self) -> str:
        return ""


class _There:
    """The memory of the running instance."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def look(self, records: Sequence[Record]) -> Sequence[ImportVerdict]:
        return self._post_records("look", records)

    async def take(self, records: Sequence[Record], contested: Sequence[bytes]) -> Sequence[ImportVerdict]:
        return self._post_records("take", records, [one.hex() for one in contested])

    async def learn(self, records: Sequence[BundleEntry]) -> Sequence[ImportVerdict]:
        return self._post_records("learn", records)

    async def key_print(self) -> str:
        return str(self._post("key")["key_print"])

    async def adopt_key(self, key: bytes) -> bool:
        """Make tombstones with this key from now on; False where there is another."""
        return bool(self._post("key", key=key.hex())["adopted"])

    def _post_records(self, do: str, records: Sequence[Record], contested: Sequence[str] = ()) -> list[ImportVerdict]:
        lines = [bundle_lines.line_of(one) for one in records]
        told = self._post(do, records=lines, contested=list(contested))["verdicts"]
        return [
            ImportVerdict(ImportOutcome(one["outcome"]), one["why"], tuple(one["beside"]), tuple(one["like"]))
            for one in told
        ]

    def _post(self, do: str, **fields: object) -> Any:
        return self._remote.post("/v1/memories/import", json.dumps({"do": do, **fields}).encode())
