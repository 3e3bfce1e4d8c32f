"""Nobody is told what is not for them, whatever was said, joined, split and widened before, by any read there is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.figures import Figures
from tests.property.memory_stage import stage
from tests.property.scope_walk import Subject, Walk
from tests.property.scope_world import Ear

from keepsaid.domain.memory import Listener
from keepsaid.domain.visibility import ShareMemory, ShareReach

READS, SOAK_WALKS = 20_000, 50


def walked(folder: Path, seed: int, subject: type[Subject] = Subject, reads: int = READS) -> Walk:
    folder.mkdir(exist_ok=True)
    with stage(folder) as scene:
        walk = Walk(subject(scene.store), seed)
        scene.run(walk.run(reads))
        return walk


def test_twenty_thousand_reads_tell_nobody_what_is_not_for_them(tmp_path: Path) -> None:
    walk = walked(tmp_path, 6)
    assert walk.leaks == []
    assert sum(walk.counted.values()) == READS
    assert min(walk.counted.values()) >= READS // 14


@pytest.mark.soak
def test_a_million_reads_tell_nobody_what_is_not_for_them(tmp_path: Path, figures: Figures) -> None:
    """Named in `make soak PART=scopes`."""
    counted: Counter[str] = Counter()
    leaks: list[str] = []
    for seed in range(SOAK_WALKS):
        walk = walked(tmp_path / str(seed), seed)
        counted += walk.counted
        leaks += walk.leaks
    figures(reads=sum(counted.values()), leaks=len(leaks), walks=SOAK_WALKS, **counted)
    assert leaks == []
    assert sum(counted.values()) == SOAK_WALKS * READS


class EverySplitForgotten(Subject):
    """Says that it split, and did not."""

    async def split(self, name: str) -> bool:
        return len(await self.store.people.joined_with(name)) > 1


class EveryRoomAChat(Subject):
    """Believes that nobody else listens."""

    def listener(self, ear: Ear) -> Listener:
        return replace(super().listener(ear), direct=True)


class EveryLaneAsked(Subject):
    """Always hears other lanes."""

    def listener(self, ear: Ear) -> Listener:
        return replace(super().listener(ear), cross=True)


class WidenedTooFar(Subject):
    """Lets everybody hear what one person was to hear."""

    async def widen(self, commit: ShareMemory) -> bool:
        done = await super().widen(commit)
        if done and commit.to is ShareReach.CONVERSATION:
            await super().widen(replace(commit, to=ShareReach.GLOBAL))
        return done


@pytest.mark.parametrize("broken", [EverySplitForgotten, EveryRoomAChat, EveryLaneAsked, WidenedTooFar])
def test_a_broken_rule_is_found_within_a_few_thousand_reads(tmp_path: Path, broken: type[Subject]) -> None:
    try:
        walk = walked(tmp_path, 6, broken, 4_000)
    except AssertionError:  # the world and the store no longer agree on who is who
        return
    assert walk.leaks != []
