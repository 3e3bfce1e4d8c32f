"""Exporting: all that is known, or what somebody may hear, in one file: a bundle, or pages that people read."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from keepsaid.domain.bundle import BundleEntry
from keepsaid.domain.ids import show, when
from keepsaid.domain.memory import IMPORTANCE, OWNER, Kind, Listener, Memory
from keepsaid.domain.visibility import identity_in
from keepsaid.errors import InputError
from keepsaid.ports.memory_store import BundleContents, Bundles
from keepsaid.services.bundle_file import NAMED, placed, write_lines
from keepsaid.text.normal import normalise

_NOBODY = "Nobody in particular"
_DAY_CHARS = 10
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]<>#|"})


def write_pages(out: IO[bytes], told: BundleContents, about: dict[str, Any]) -> None:
    """Write what was learned, by subject and kind; what was said word for word is counted alone."""
    known: dict[str, dict[Kind, list[str]]] = defaultdict(lambda: defaultdict(list))
    rest = 0
    for record in told.records:
        if not isinstance(record, BundleEntry):
            continue
        memory = record.memory
        if memory.new.kind in IMPORTANCE and memory.state != "merged":
            subject = memory.new.subject or memory.new.subject_id or _NOBODY
            known[subject][memory.new.kind].append(_memory_line(memory))
        else:
            rest += 1
    out.write(_heading(about, rest).encode())
    for subject in sorted(known, key=lambda one: (one == _NOBODY, one.casefold())):
        out.write(f"\n## {_plain(subject)}\n".encode())
        for kind in IMPORTANCE:
            if known[subject].get(kind):
                lines = "\n".join(known[subject][kind])
                out.write(f"\n### {kind.capitalize()}\n\n{lines}\n".encode())


def _heading(about: dict[str, Any], rest: int) -> str:
    persons = ", ".join(map(str, about.get("persons") or ())) or "the owner, who hears everything"
    said = f"{rest:,} episodes, summaries and briefings are not on this page; `--format jsonl` has them."
    return f"# Memory\n\nMade at {about['made_at']}, for {_plain(persons)}. {said}\n"


def _memory_line(memory: Memory) -> str:
    new = memory.new
    held = [f"since {_day(memory.holds_from)}"]
    if memory.valid_to is not None:
        held.append(f"until {_day(memory.valid_to)}")
    held += ["archived"] if memory.state == "archived" else []
    held += [f"said by {_plain(new.speaker)}"] if new.speaker else []
    held += [f"told {memory.evidence} times"] if memory.evidence > 1 else []
    return f"- {_plain(new.text)} ({'; '.join(held)}; `{show('memory', memory.id)}`)"


def _day(ms: int) -> str:
    return (when(ms) or "ever")[:_DAY_CHARS]


def _plain(text: str) -> str:
    """A text on one line that is no markup."""
    return " ".join(text.split()).translate(_MARKS)


FORMATS: dict[str, tuple[str, Callable[[IO[bytes], BundleContents, dict[str, Any]], None]]] = {
    "jsonl": ("jsonl", write_lines),
    "markdown": ("md", write_pages),
}
"""The forms of an export: how such a file ends, and what writes it."""


def listeners_of(persons: Sequence[str]) -> tuple[Listener, ...]:
    """Who is told: the owner, who hears everything, or these persons in their direct chats. Raises InputError."""
    named = [normalise(person).strip() for person in persons]
    for one in named:
        if one != OWNER and identity_in(one) is None:
            raise InputError(
                f"{one!r} names nobody: it takes CHANNEL:ACCOUNT:SENDER, or owner",
                safe="Nothing was written.",
                hint="keepsaid people ls",
            )
    if not named:
        return (Listener(None, everything=True),)
    return tuple(Listener(None, person=one, direct=True, cross=True) for one in named)


def place_of(target: Path, form: str) -> Path:
    """The file to write: `target`, or one with the time in its name where that is a directory. Raises InputError."""
    if form not in FORMATS:
        raise InputError(f"there is no format {form!r}; one of: {', '.join(FORMATS)}", safe="Nothing was written.")
    if not target.is_dir():
        return target.absolute()
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    return target.absolute() / f"{NAMED}memory-{stamp}.{FORMATS[form][0]}"


@dataclass(frozen=True, slots=True)
class Export:
    """What was written: where, in which form, when (ISO 8601), for whom, how many of what, and its size in bytes."""

    file: Path
    format: str
    made_at: str
    persons: Sequence[str]
    counts: Mapping[str, int]
    bytes: int


async def export(bundles: Bundles, target: Path, form: str, persons: Sequence[str], *, force: bool) -> Export:
    """Write what the persons may hear, or everything, as of one moment. Raises InputError and HomeError."""
    listeners, place = listeners_of(persons), place_of(target, form)
    about: dict[str, Any] = {
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "persons": [one.person for one in listeners if not one.everything],
    }

    def write(told: BundleContents) -> dict[str, int]:
        with placed(place, force=force) as out:
            FORMATS[form][1](out, told, about)
        return dict(told.counts)

    counts = await bundles.export(listeners, write)
    return Export(place, form, about["made_at"], about["persons"], counts, place.stat().st_size)
