"""Memory as a page that people read: what is known of whom, by kind, with since when and until when it held."""

from __future__ import annotations

from collections import defaultdict
from typing import IO, Any

from keepsaid.domain.bundle import Entry
from keepsaid.domain.ids import show
from keepsaid.domain.memory import IMPORTANCE, Kind, Memory
from keepsaid.interfaces.shapes import when
from keepsaid.ports.memory_store import BundleContents

_NOBODY = "Nobody in particular"
_DAY_CHARS = 10
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]<>#|"})


def write_pages(out: IO[bytes], told: BundleContents, about: dict[str, Any]) -> None:
    """Write what was learned, by subject and kind; what was said word for word is counted alone."""
    known: dict[str, dict[Kind, list[str]]] = defaultdict(lambda: defaultdict(list))
    rest = 0
    for record in told.records:
        if not isinstance(record, Entry):
            continue
        memory = record.memory
        if memory.new.kind in IMPORTANCE and memory.state != "merged":
            subject = memory.new.subject or memory.new.subject_id or _NOBODY
            known[subject][memory.new.kind].append(_line(memory))
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


def _line(memory: Memory) -> str:
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
