"""What becomes of extensions is told, as the schemas say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.extension_cast import put

from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.events.catalog import CORE

SETTINGS: dict[str, Any] = {"models": {"chat": "none"}, "collection": {"extractor": "none"}}
GOOD = """
@extension(id="good")
class Good:
    async def initialize(self, context): ...
"""
BAD = """
@extension(id="bad")
class Bad:
    async def initialize(self, context):
        raise ValueError("no")
"""


async def test_who_was_let_in_and_who_failed_is_told(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    put(home.extensions, "good", GOOD)
    put(home.extensions, "bad", BAD)
    async with opened(home, load(home.config_file, SETTINGS)[0]) as instance:
        await instance.start()
        events = [one for one in await instance.telling.journal.latest(100) if one.topic.startswith("extension.")]
    assert {(one.topic, str(one.payload["extension"])) for one in events} == {
        ("extension.started", "good"),
        ("extension.quarantined", "bad"),
    }
    assert [wrong for one in events for wrong in CORE[one.topic].amiss(one.payload)] == []
