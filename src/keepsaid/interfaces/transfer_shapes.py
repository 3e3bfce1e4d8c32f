"""Exports and imports of memory as JSON, the same by command and in the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepsaid.domain.bundle import ImportOutcome

if TYPE_CHECKING:
    from collections import Counter

    from keepsaid.memory.importing import ImportReport
    from keepsaid.services import bundles, importing

Shape = dict[str, Any]


def import_shape(report: ImportReport, asked: importing.ImportRequest, *, dry_run: bool) -> Shape:
    """The outcomes of all lines, counted by type and kind, and those that were not imported by reason and line."""
    from keepsaid.memory.importing import TYPES  # noqa: PLC0415 - `--help` needs none of it

    names = [*TYPES.values(), *(["lines"] if any(what == "lines" for what, _ in report.counts) else [])]
    kinds = sorted({kind for kind, _ in report.kinds})
    reasons = [
        {"type": what, "outcome": str(outcome), "why": why, "lines": n}
        for (what, outcome, why), n in report.reasons.most_common()
    ]
    told = [
        {"line": number, "type": what, "outcome": str(verdict.outcome), "why": verdict.why}
        for number, what, verdict in report.told
    ]
    about = {"dry_run": dry_run, "file": str(asked.file), "from": asked.source, "trust": str(asked.trust)}
    counts = {"counts": _counts(report.counts, names), "kinds": _counts(report.kinds, kinds)}
    return {**about, **counts, "secrets": report.secrets, "reasons": reasons, "told": told, "not_told": report.left_out}


def _counts(counts: Counter[tuple[str, ImportOutcome]], names: list[str]) -> Shape:
    return {name: {str(how): counts[name, how] for how in ImportOutcome} for name in names}


def export_shape(done: bundles.Export) -> Shape:
    """The file that was written, and how many records of each type it holds."""
    about = {"file": str(done.file), "format": done.format, "made_at": done.made_at, "persons": list(done.persons)}
    return {**about, "counts": dict(done.counts), "bytes": done.bytes}
