"""An idle day on real files: it asks no model, and the logs of the stores are no longer after it than before."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from random import Random

from tests.month.home import Stores, VirtualHome, lived, played
from tests.month.test_month import FACTS, Overeager, config, day

from keepsaid.adapters.sqlite.inline import buffer_inline, memory_inline
from keepsaid.adapters.sqlite.stores import SqliteMemories, SqliteOperations
from keepsaid.adapters.system.machine import SystemIds

_DAY_S = 86_400
_ROUND_S = 120
"""So often everything that polls comes round: each poll is a read of the files."""

_LOGS = ("buffer.db-wal", "memory.db-wal")


class Files:
    """Both stores in files of a folder, written and read on the loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.opened = ExitStack()

    def __call__(self, ids: SystemIds) -> Stores:
        """The stores, for one runtime."""
        buffer, memory = buffer_inline(self._folder / "buffer.db"), memory_inline(self._folder / "memory.db")
        for part in (*buffer, *memory):
            self.opened.callback(part.drop)
        return SqliteOperations(*buffer), SqliteMemories(*memory, ids)

    def logs(self) -> dict[str, int]:
        """How long the log of each store is, in bytes."""
        return {name: (self._folder / name).stat().st_size for name in _LOGS}


def test_an_idle_day_asks_no_model_and_leaves_the_logs_as_short(tmp_path: Path) -> None:
    """After a day in which everything was told, and one in which all of it was read."""
    model, files = Overeager(), Files(tmp_path)

    async def life(home: VirtualHome) -> None:
        chance, facts = Random(5), list(FACTS)
        await day(home, 0, chance, facts)
        assert all(files.logs().values()), "what was said went through them"
        home.jump(_DAY_S)
        await asyncio.sleep(600)
        assert model.calls["turn"] > 10
        assert model.calls["extract"] > 0
        assert not await home.store.collections(("marked", "claimed", "parked"), 10)
        asked, logs = model.calls.total(), files.logs()
        for _ in range(_DAY_S // _ROUND_S):
            home.jump(_ROUND_S - 1)
            await asyncio.sleep(1)
        assert model.calls.total() == asked
        nights = await home.memories.upkeep.runs()
        assert nights
        assert all(home.wall.now_ms() - one.begun_at < _DAY_S * 1_000 for one in nights), "the night came, and is over"
        assert all(one.ended_at is not None for one in nights)
        assert {name: now - logs[name] for name, now in files.logs().items() if now > logs[name]} == {}

    with files.opened:
        played(lambda loop: VirtualHome(loop, model, config(), files), life)


def test_nothing_is_read_after_a_stop() -> None:
    """The marks stay where they are, for the next start."""
    model = Overeager()

    async def life(home: VirtualHome) -> None:
        for text in [*FACTS][:4]:
            await home.say("owner", text)
        assert await home.store.collections(("marked",), 10)
        await home.instance.stop()
        asked = model.calls.total()
        await asyncio.sleep(_DAY_S)
        assert (model.calls.total(), model.calls["extract"]) == (asked, 0)
        assert await home.store.collections(("marked",), 10)

    lived(model, config(), life)
