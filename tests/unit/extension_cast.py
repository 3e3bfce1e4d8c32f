"""Extensions for tests: written into a home, found there, and let in."""

from __future__ import annotations

import textwrap
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keepsaid.domain.event import Event
from keepsaid.domain.prompt import Json
from keepsaid.extensions.discover import Found, in_folder
from keepsaid.extensions.given import GuestContext
from keepsaid.extensions.guest import Guest, State
from keepsaid.extensions.lifecycle import Lifecycle, Limits, Surroundings
from keepsaid.extensions.manifest import Manifest
from keepsaid.extensions.settings import settings_of
from keepsaid.ports.inbox import Incoming
from keepsaid.testing.clock import VirtualClock

HEAD = "from keepsaid.extensions import context, extension, on, schedule, tool\n"
QUICK = Limits(2.0, 0.05, 0.05, 0.05, 0.05)

HANGS = """
import asyncio

@extension(id='hangs_start')
class A:
    async def start(self): await asyncio.Event().wait()
"""

BROKEN: Mapping[str, tuple[str, str, str]] = {
    "unparsable": ("def broken(:\n", "manifest", "no Python"),
    "unready_manifest": (
        "NAME = 'x'\n@extension(id=NAME)\nclass A:\n    pass\n",
        "manifest",
        "id must be a literal",
    ),
    "cannot_import": (
        "import no_such_module_anywhere\n@extension(id='cannot_import')\nclass A: ...\n",
        "import",
        "No module",
    ),
    "exits": ("raise SystemExit(3)\n@extension(id='exits')\nclass A: ...\n", "import", "SystemExit"),
    "cannot_create": (
        "@extension(id='cannot_create')\nclass A:\n    def __init__(self, needed): ...\n",
        "create",
        "TypeError",
    ),
    "fails_initialize": (
        "@extension(id='fails_initialize')\nclass A:\n    async def initialize(self, _): raise ValueError('no luck')\n",
        "initialize",
        "ValueError: no luck",
    ),
    "hangs_start": (
        HANGS,
        "start",
        "took longer than",
    ),
    "no_docstring": (
        "@extension(id='no_docstring')\nclass A:\n    @tool\n    async def roll(self): ...\n",
        "provide",
        "has no docstring",
    ),
    "missing_dependency": (
        "@extension(id='missing_dependency', depends_on=['nobody'])\nclass A: ...\n",
        "dependencies",
        "depends on nobody",
    ),
    "wrong_settings": (
        "@extension(id='wrong_settings', config={'port': {'type': 'integer', 'required': True}})\nclass A: ...\n",
        "settings",
        "config.port: it has to be set",
    ),
}
"""Extensions that are broken, each in another way: source, phase, and what is said of it."""


def put(folder: Path, name: str, source: str) -> Path:
    """Write an extension in one file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(HEAD + textwrap.dedent(source), "utf-8")
    return file


def put_folder(folder: Path, name: str, manifest: str, source: str = "") -> Path:
    """Write an extension with a manifest; its code is in `main.py`."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "manifest.yaml").write_text(textwrap.dedent(manifest), "utf-8")
    if source:
        (place / "main.py").write_text(textwrap.dedent(source), "utf-8")
    return place


def put_broken(folder: Path, but: str = "") -> None:
    """Write all that are broken, but one."""
    for name, (source, _, _) in BROKEN.items():
        if name != but:
            put(folder, name, source)


@dataclass
class Lobby:
    """Stands for the runtime: what extensions did is written down."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    emitted: list[tuple[str, str, Mapping[str, Json], str]] = field(default_factory=list)
    told_of: dict[str, tuple[str, Callable[[Event], Awaitable[object]]]] = field(default_factory=dict)
    notices: list[tuple[str, str, str]] = field(default_factory=list)
    received: list[tuple[str, Incoming]] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)

    async def emit(self, extension: str, topic: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """Write down an event."""
        self.emitted.append((extension, topic, payload, correlation_id))

    async def subscribe(self, name: str, topic: str, tell: Callable[[Event], Awaitable[object]]) -> None:
        """Write down a subscription."""
        self.told_of[name] = topic, tell

    async def notify(self, extension: str, text: str, about: str) -> None:
        """Write down a notice."""
        self.notices.append((extension, text, about))

    async def receive(self, channel: str, incoming: Incoming) -> bool:
        """Write down a message."""
        self.received.append((channel, incoming))
        return True

    async def told(self, topic: str, payload: Mapping[str, Json], about: str) -> None:
        """Nothing is written down of this."""

    async def changed(self, guest: Guest) -> None:
        """Write down where an extension stands."""
        self.changes.append((guest.id, guest.state.value))


def lifecycle(
    folder: Path, lobby: Lobby, settings: Mapping[str, Mapping[str, Any]] | None = None, limits: Limits = QUICK
) -> Lifecycle:
    """What lets in all of a folder."""
    return lifecycle_of(in_folder(folder), lobby, folder, settings, limits)


def lifecycle_of(
    found: list[Found],
    lobby: Lobby,
    folder: Path,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    limits: Limits = QUICK,
) -> Lifecycle:
    """What lets in these."""

    def context(manifest: Manifest, peer: Callable[[str], Any]) -> GuestContext:
        given = settings_of(manifest, (settings or {}).get(manifest.id, {}))
        return GuestContext(manifest, given, lobby, peer, folder.parent / "data" / manifest.id)

    return Lifecycle(found, Surroundings(context, lambda _: None, lobby.clock, str, lobby.changed, limits))


def standing(life: Lifecycle) -> dict[str, State]:
    """Where each stands."""
    return {id_: guest.state for id_, guest in life.guests.items()}
