"""Memory in files, for the library: all that is known in one file, and what another home or program knew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keepsaid.app.instance import Instance
from keepsaid.app.services import note_backup
from keepsaid.domain.message import Trust
from keepsaid.errors import InputError
from keepsaid.interfaces.transfer import export_shape, import_shape
from keepsaid.services.exporting import export
from keepsaid.services.importing import KEEPSAID, MEM0, ImportRequest, LocalMemory, import_memories, preview_import
from keepsaid.services.people import person_in


class MemoryFiles:
    """Exports and imports of the memory of one home."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    async def export(
        self, target: str | Path, form: str = "jsonl", persons: Sequence[str] = (), *, force: bool = False
    ) -> dict[str, Any]:
        """Write all that is known, or what `persons` may hear, into one file; `form` is jsonl or markdown.

        Returns where it is and what it holds. Raises InputError and HomeError with nothing written.
        """
        done = await export(self._instance.memories.bundles, Path(target), form, persons, force=force)
        note_backup(self._instance.home, done.file)
        return export_shape(done)

    async def import_from(
        self,
        file: str | Path,
        source: str = KEEPSAID,
        persons: Mapping[str, str] | None = None,
        *,
        trust: str = "",
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Take over a bundle of `export`, or with `source` "mem0" a JSON file of it; what is here already stays.

        `persons` says who is who that mem0 names. Returns what became of the lines; again changes nothing. Raises
        InputError with nothing imported.
        """
        if source not in (KEEPSAID, MEM0) or trust not in ("", *Trust):
            raise InputError(f"source is {KEEPSAID} or {MEM0}, and trust one of: {', '.join(Trust)}")
        most = Trust(trust) if trust else Trust.KNOWN if source == MEM0 else Trust.OWNER
        named = {name: person_in(one, self._instance.config) for name, one in (persons or {}).items()}
        asked = ImportRequest(Path(file), source, most, named)
        memory = LocalMemory(self._instance.memories, self._instance.clock)
        take = preview_import if dry_run else import_memories
        report = await take(asked, memory, self._instance.redactor, self._instance.clock.now_ms())
        return import_shape(report, asked, dry_run=dry_run)
