"""Exporting as people ask for it: all that is known, or what somebody may hear, in one file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from keepsaid.domain.memory import OWNER, Listener
from keepsaid.domain.people import identity_in
from keepsaid.errors import InputError
from keepsaid.interfaces.bundle_file import placed, write_lines
from keepsaid.interfaces.pages import write_pages
from keepsaid.interfaces.partials import NAMED
from keepsaid.interfaces.shapes import Shape
from keepsaid.ports.memory_store import BundleContents, Bundles
from keepsaid.text.normal import normalise

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


async def exported(bundles: Bundles, target: Path, form: str, persons: Sequence[str], *, force: bool) -> Shape:
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

    counts = await bundles.tell(listeners, write)
    return {"file": str(place), "format": form, **about, "counts": counts, "bytes": place.stat().st_size}
