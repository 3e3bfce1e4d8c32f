"""Lives that only delete what was kept aside and can be undone no more, and are killed at a point.

`python -m tests.crash.purging` reads lines `HOME POINT COUNT` and lives each in a process of its own; for each it
writes whether the point killed it.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from tests.crash.remembering import killed

from keepsaid.app.opening import opened
from keepsaid.config import Config, Home


async def purge(folder: str) -> None:
    """All that a life does."""
    async with opened(Home.at(Path(folder)), Config()) as instance:
        await instance.forgetter.purge()


def main() -> int:
    """Live what is asked for, line by line."""
    for line in sys.stdin:
        home, point, count = line.split()
        sys.stdout.write(f"{killed(partial(purge, home), point, int(count))}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
