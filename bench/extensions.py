"""Extensions: how long it takes to find and let in twenty, eight of them broken, their imports included."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median

from keepsaid.extensions.discovery import in_folder
from keepsaid.extensions.loading import forget
from keepsaid.testing.recording_runtime import RecordingRuntime

_GOOD = """from keepsaid.extensions import context, extension, on, tool


@extension(id="{id}", depends_on={needs}, config={{"size": {{"type": "integer", "default": 3}}}})
class Good:
    async def initialize(self, context):
        self.size = context.config["size"]

    async def start(self): ...

    @tool(kind="pure")
    async def {id}_count(self, text: str, times: int = 1) -> str:
        "Count the characters of a text."
        return str(len(text) * times)

    @context(priority=20)
    async def about(self, claimed): ...

    @on("deploy.*")
    async def deployed(self, event): ...
"""
_HEAD = "from keepsaid.extensions import extension, tool\n"
_BROKEN = {
    "unparsable": "def broken(:\n",
    "unread": "NAME = 'x'\n@extension(id=NAME)\nclass A: ...\n",
    "no_import": "import no_such_module\n@extension(id='no_import')\nclass A: ...\n",
    "exits": "raise SystemExit\n@extension(id='exits')\nclass A: ...\n",
    "no_create": "@extension(id='no_create')\nclass A:\n    def __init__(self, needed): ...\n",
    "no_start": "@extension(id='no_start')\nclass A:\n    async def start(self): raise ValueError\n",
    "no_docs": "@extension(id='no_docs')\nclass A:\n    @tool\n    async def roll(self): ...\n",
    "lonely": "@extension(id='lonely', depends_on=['nobody'])\nclass A: ...\n",
}
_GOOD_COUNT = 12


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Milliseconds to find all, to let all in (imports are part of it), and to let them out."""
    place = folder / "extensions"
    place.mkdir()
    for number in range(_GOOD_COUNT):
        id_ = f"good{number}"
        needs = [f"good{number - 1}"] if number % 4 else []
        (place / f"{id_}.py").write_text(_GOOD.format(id=id_, needs=needs), "utf-8")
    for id_, source in _BROKEN.items():
        (place / f"{id_}.py").write_text(_HEAD + source, "utf-8")
    rounds = [asyncio.run(_round(place, folder / "data")) for _ in range(max(3, int(9 * scale)))]
    found_ms, begun_ms, ended_ms = (median(column) for column in zip(*rounds, strict=True))
    return {
        "extensions": _GOOD_COUNT + len(_BROKEN),
        "broken": len(_BROKEN),
        "find_ms": round(found_ms, 1),
        "let_in_ms": round(begun_ms, 1),
        "whole_ms": round(found_ms + begun_ms, 1),
        "let_out_ms": round(ended_ms, 1),
    }


async def _round(place: Path, data: Path) -> tuple[float, float, float]:
    began = time.perf_counter()
    found = in_folder(place)
    seen = time.perf_counter()
    life = RecordingRuntime().lifecycle(found, data)
    await life.begin()
    up = time.perf_counter()
    assert len(life.active) == _GOOD_COUNT, [(one.id, one.fault) for one in life.guests.values() if one.fault]
    await life.end()
    down = time.perf_counter()
    for one in found:
        if one.manifest is not None:
            forget(one)
    return (seen - began) * 1_000, (up - seen) * 1_000, (down - up) * 1_000
