"""Peers: the same messages, each durable before it is acknowledged, by others and by a bare loop, in the same run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

from bench.bare import bare, bare_indexed
from bench.contender import Absent, Contender
from bench.intake import Figures, message, receiving, sent
from bench.libraries import aiosqlite, huey, litequeue, persist_queue
from bench.servers import procrastinate, redis_streams
from keepsaid.domain.message import Inbound

OURS, BARE = "keepsaid", ("bare_loop", "bare_loop_indexed")
CONTENDERS = {
    OURS: Contender(lambda folder: receiving(folder / "buffer.db"), "synchronous=FULL, one sync a group"),
    "bare_loop": Contender(bare, "synchronous=FULL, one sync a group"),
    "bare_loop_indexed": Contender(bare_indexed, "synchronous=FULL, one sync a group"),
    "aiosqlite": Contender(aiosqlite, "synchronous=FULL, set here"),
    "litequeue": Contender(litequeue, "synchronous=FULL, set here; its own is NORMAL", producers=1),
    "persist_queue": Contender(persist_queue, "synchronous=FULL, the default of SQLite", producers=1),
    "huey": Contender(huey, "synchronous=FULL, its fsync=True", producers=1),
    "redis_streams": Contender(redis_streams, "appendfsync always"),
    "procrastinate": Contender(procrastinate, "fsync and synchronous_commit on, the defaults of PostgreSQL"),
}
_ROUNDS = 3
_SECONDS_EACH = 1.2
_MESSAGES = 80_000


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Everyone in turn, three times over, for about a second each at `scale` 1; medians, and medians of ratios."""
    seconds = max(0.1, _SECONDS_EACH * scale)
    messages = [message(n) for n in range(max(5_000, int(_MESSAGES * scale)))]
    taken: dict[str, list[Figures]] = {name: [] for name in CONTENDERS}
    skipped: dict[str, str] = {}
    for place in (folder.parent, folder):
        place.chmod(0o711)  # a PostgreSQL that runs as another user has to find its files below
    for n in range(_ROUNDS):
        for name, contender in CONTENDERS.items():
            if name not in skipped:
                place = folder / f"{name}-{n}"
                place.mkdir()
                try:
                    taken[name].append(asyncio.run(run(contender, place, within(messages, seconds))))
                except Absent as reason:
                    skipped[name] = str(reason)
    return {
        "seconds_each": seconds,
        **{name: summary(name, taken) for name in CONTENDERS if name not in skipped},
        "our_share_of": {name: median(ratios(taken[OURS], taken[name])) for name in BARE},
        "skipped": skipped,
    }


async def run(contender: Contender, folder: Path, messages: Iterable[Inbound]) -> Figures:
    """Let a contender store messages in a folder of its own."""
    async with contender.opened(folder) as put:
        return await sent(put, messages, contender.producers)


def within(messages: Iterable[Inbound], seconds: float) -> Iterator[Inbound]:
    """Messages until so many seconds have passed since the first was taken."""
    start = time.perf_counter()
    for one in messages:
        if time.perf_counter() - start > seconds:
            return
        yield one


def summary(name: str, taken: dict[str, list[Figures]]) -> dict[str, object]:
    """The figures of one contender, and how many times as many messages a second keepsaid stores."""
    contender, rounds = CONTENDERS[name], taken[name]
    told: dict[str, object] = {figure: median(one[figure] for one in rounds) for figure in rounds[0]}
    if name != OURS:
        told["ours_times"] = median(ratios(taken[OURS], rounds))
    return {**told, "producers": contender.producers, "durable": contender.durable}


def ratios(ours: Sequence[Figures], theirs: Sequence[Figures]) -> list[float]:
    """Ours to theirs, round by round: the disk of one round is not that of the next."""
    return [one["per_s"] / other["per_s"] for one, other in zip(ours, theirs, strict=False)]
