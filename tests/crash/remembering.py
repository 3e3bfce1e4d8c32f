"""Lives that only remember: one keeps memories, relates them and gives them vectors, and is killed at a point.

`python -m tests.crash.remembering FOLDER` reads lines `NAME POINT COUNT` and lives each in a process of its own, with
its store in FOLDER/NAME; for each it writes whether the point killed it. What the lives do is the same in all of them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy  # noqa: F401 - every life begins with it, so that none waits for it
from tests.unit.derived import near_the_end_of_a_block, tell

from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.memory.indexing import Embedding
from keepsaid.ports.runtime import arm
from keepsaid.testing.clock import CountingIds, VirtualClock

ROUNDS, EACH = 3, 20


async def remember(path: Path) -> None:
    """All that a life does; each round brings vectors to the end of what one block spans."""
    store = await open_memories(path, CountingIds())
    try:
        for round_ in range(ROUNDS):
            await tell(store, round_ * EACH, EACH)
            await Embedding(Hashed(), store, VirtualClock()).finish()
            with closing(open_writer(path)) as db:
                near_the_end_of_a_block(db)
    finally:
        await store.close()


def killed(life: Callable[[], Coroutine[object, object, object]], point: str, count: int) -> bool:
    """Live in a process of its own; returns whether it came to the `count`th pass of the point, and died of it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    left = count

    def pass_by(name: str) -> None:
        nonlocal left
        left -= name == point
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    arm(pass_by)
    asyncio.run(life())
    os._exit(0)


def main() -> int:
    """Live what is asked for, line by line."""
    for line in sys.stdin:
        name, point, count = line.split()
        path = Path(sys.argv[1], name, "memory.db")
        path.parent.mkdir()
        sys.stdout.write(f"{killed(partial(remember, path), point, int(count))}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
