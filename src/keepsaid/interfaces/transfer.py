"""Exports and imports as JSON, the same by command and in the library (short: one shape each)."""

from __future__ import annotations

from keepsaid.domain.bundle import ImportOutcome
from keepsaid.interfaces.shapes import Shape
from keepsaid.memory.importing import TYPES, ImportReport
from keepsaid.services.exporting import Export
from keepsaid.services.importing import ImportRequest


def import_shape(report: ImportReport, asked: ImportRequest, *, dry_run: bool) -> Shape:
    """What became of all lines, counted, and those that were not taken over one by one."""
    names = [*TYPES.values(), *(["lines"] if any(what == "lines" for what, _ in report.counts) else [])]
    counts = {what: {str(how): report.counts[what, how] for how in ImportOutcome} for what in names}
    told = [
        {"line": number, "type": what, "outcome": str(verdict.outcome), "why": verdict.why}
        for number, what, verdict in report.told
    ]
    about = {"dry_run": dry_run, "file": str(asked.file), "from": asked.source, "trust": str(asked.trust)}
    return {**about, "counts": counts, "secrets": report.secrets, "told": told, "not_told": report.left_out}


def export_shape(done: Export) -> Shape:
    """What was written, and where."""
    about = {"file": str(done.file), "format": done.format, "made_at": done.made_at, "persons": list(done.persons)}
    return {**about, "counts": dict(done.counts), "bytes": done.bytes}
