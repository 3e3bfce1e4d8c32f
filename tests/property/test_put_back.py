"""Any sequence of sayings, forgettings, undos, backups and stores put back: what is forgotten stays unreadable."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.property.forgetting_world import World

from keepsaid.adapters.sqlite.stores import accept_loss, lacks_tombstones, open_stores
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.maintenance import DAY_MS
from keepsaid.engine.forgetter import Forgetter
from keepsaid.testing.clock import CountingIds, VirtualClock

_STORES = ("buffer.db", "memory.db")
_ID_STEP = 1_000


@dataclass
class Tale:
    """A home in a folder, and what was said and forgotten in it."""

    folder: Path
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(1_000))
    ids: CountingIds = field(default_factory=lambda: CountingIds(10_000_000))
    next_id: int = 1
    said: list[str] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)
    undoable: dict[int, str] = field(default_factory=dict)
    backups: list[Path] = field(default_factory=list)

    @property
    def data(self) -> Path:
        """The directory of the stores."""
        return self.folder / "data"

    @property
    def stores(self) -> tuple[Path, Path]:
        """The two stores."""
        return self.data / "buffer.db", self.data / "memory.db"

    @asynccontextmanager
    async def started(self) -> AsyncIterator[World]:
        """The home after a start; ids go on where they stopped, as those made from the time do."""
        async with AsyncExitStack() as closing:
            stage = World(*await open_stores(*self.stores, self.ids, closing))
            stage.clock, stage.ids = self.clock, self.ids
            stage.forgetter = Forgetter((stage.operations, stage.memories), self.clock, self.ids)
            stage.continue_from(self.next_id)
            self.next_id += _ID_STEP
            await stage.forgetter.recover()
            await stage.forgetter.work()
            yield stage

    async def say(self) -> None:
        """Say a sentence with a word that no other has."""
        word = f"zebraquix{len(self.said)}x"
        async with self.started() as stage:
            await stage.say(f"the {word} of ours is painted", f"room {len(self.said)}")
        self.said.append(word)

    async def forget(self, which: int, *, undoable: bool) -> None:
        """Forget one of the sentences, if it is there."""
        if not self.said:
            return
        word = self.said[which % len(self.said)]
        async with self.started() as stage:
            done = await stage.forget(ForgetSelector(text=word), DAY_MS if undoable else 0)
        if done is not None:
            assert done.state == "done"
            self.forgotten.add(word)
            if undoable:
                self.undoable[done.id] = word

    async def undo(self, which: int) -> None:
        """Undo a forgetting, where its undo image is still there: then its sentence is readable from now on."""
        if not self.undoable:
            return
        number = sorted(self.undoable)[which % len(self.undoable)]
        async with self.started() as stage:
            done = await stage.forgetter.undo(number)
        if done is not None:
            self.forgotten.discard(self.undoable[number])
            async with self.started() as stage:
                assert any(self.undoable[number] in text for text in await stage.texts()), "an undo lasts"

    def back_up(self) -> None:
        """Copy both stores."""
        self.backups.append(self.folder / f"backup {len(self.backups)}")
        self.backups[-1].mkdir()
        for name in _STORES:
            shutil.copy(self.data / name, self.backups[-1] / name)

    def put_back(self, which: int, names: tuple[str, ...]) -> None:
        """Copy stores of a backup into the home."""
        if not self.backups:
            return
        for name in names:
            shutil.copy(self.backups[which % len(self.backups)] / name, self.data / name)
        accept_loss(*self.stores)

    async def check(self) -> None:
        """After the next start no read returns what is forgotten, and unless it can be undone no file holds it."""
        async with self.started() as stage:
            texts = " ".join(await stage.texts())
            told = " ".join([row[1] for row in await self._messages(stage)])
            for word in self.forgotten:
                assert word not in texts, f"{word} is remembered"
                assert word not in told, f"{word} is in a message"
        assert not lacks_tombstones(*self.stores)
        held = {file.name: file.read_bytes() for file in self.data.iterdir()}
        for word in self.forgotten.difference(self.undoable.values()):
            assert [name for name, raw in held.items() if word.encode() in raw] == [], f"bytes of {word}"

    async def _messages(self, stage: World) -> list[tuple[int, str]]:
        return [(one, await stage.said(one)) for one in await stage.operations.reach.messages(ForgetSelector(text="z"))]


Step = tuple[str, int]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "say",
                "say",
                "forget",
                "forget",
                "forget for a while",
                "undo",
                "back up",
                "buffer",
                "memory",
                "both",
                "both",
            )
        ),
        st.integers(0, 9),
    ),
    min_size=6,
    max_size=14,
)


async def _walk(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tale = Tale(Path(folder))
        tale.data.mkdir()
        await tale.say()
        tale.back_up()
        for what, which in steps:
            if what == "say":
                await tale.say()
            elif what.startswith("forget"):
                await tale.forget(which, undoable=what != "forget")
            elif what == "undo":
                await tale.undo(which)
            elif what == "back up":
                tale.back_up()
            else:
                tale.put_back(which, _STORES if what == "both" else (f"{what}.db",))
            await tale.check()


@pytest.mark.soak
@given(steps=_STEPS)
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_in_many_sequences_what_is_forgotten_stays_unreadable(steps: list[Step]) -> None:
    asyncio.run(_walk(steps))


@given(steps=_STEPS)
@example(steps=[("forget for a while", 0), ("memory", 0), ("undo", 0)])
@settings(
    max_examples=examples(3),
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
def test_what_is_forgotten_stays_unreadable_whatever_is_put_back(steps: list[Step]) -> None:
    asyncio.run(_walk(steps))
