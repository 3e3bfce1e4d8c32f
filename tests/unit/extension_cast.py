"""Extensions for tests: written into a home, found there, and let in."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from keepsaid.extensions.discovery import in_folder
from keepsaid.extensions.lifecycle import Lifecycle, PhaseLimits
from keepsaid.extensions.loaded import State
from keepsaid.testing.recording_runtime import RecordingRuntime

HEAD = "from keepsaid.extensions import context, extension, on, schedule, tool\n"
QUICK = PhaseLimits(2.0, 0.05, 0.05, 0.05, 0.05)

HANGS = """
import asyncio

@extension(id='hangs_start')
class A:
    async def start(self): await asyncio.Event().wait()
"""

BROKEN: Mapping[str, tuple[str, str, str]] = {
    "unparsable": ("def broken(:\n", "manifest", "not Python"),
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


def lifecycle(folder: Path, lobby: RecordingRuntime, limits: PhaseLimits = QUICK) -> Lifecycle:
    """What lets in all of a folder."""
    return lobby.lifecycle(in_folder(folder), folder.parent / "data", limits=limits)


def standing(life: Lifecycle) -> dict[str, State]:
    """Where each stands."""
    return {id_: guest.state for id_, guest in life.guests.items()}
