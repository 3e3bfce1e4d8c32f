"""Fuzzing at length: a million requests to every route of a real `serve`; no error of the server, no growing memory."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest
from tests.acceptance.program import Program, Running
from tests.figures import Figures
from tests.unit.fuzz_cast import SECRET, Fuzzer, Tally, Target, fuzz
from tests.unit.http_cast import site
from tests.unit.test_http_fuzz import targets_of

REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "1000000"))
"""How many requests are sent: `FUZZ_REQUESTS=200000 make soak PART=fuzz` sends fewer."""

_PARTS = 50
_AT_ONCE = 4
_GROWTH_MAX_MB = 60.0
"""Megabytes that the process may grow by after a fifth of the requests, page caches of SQLite included."""


def resident_mb(pid: int) -> float:
    """Memory of a process, in megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:"))) / 1_000


async def played(server: Running, targets: list[Target], requests: int, seen: Callable[[], None]) -> Tally:
    """Send the requests in parts, over several connections at once; `seen` is called after each part."""
    tally, address = Tally(), urlsplit(server.url)
    place = str(address.hostname), address.port or 0
    for part in range(_PARTS):
        fuzzers = [Fuzzer(targets, server.token, Random(part * _AT_ONCE + n)) for n in range(_AT_ONCE)]
        count = requests // _PARTS // _AT_ONCE
        await asyncio.gather(*(fuzz(place, one, count, tally) for one in fuzzers))
        seen()
    return tally


async def every_target(root: Path) -> list[Target]:
    """Every route, of a server that is not the one under test."""
    async with site(root, answering=False) as one:
        return targets_of(one)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_fuzz_breaks_nothing_and_memory_stays(tmp_path: Path, figures: Figures) -> None:
    targets = asyncio.run(every_target(tmp_path / "routes"))
    program = Program(tmp_path / "home")
    program.configure(json.dumps({"models": {"chat": "none"}, "channels": {"github": {"secret": SECRET}}}))
    sizes: list[float] = []
    with program.serving(is_cold=True) as server:

        def seen() -> None:
            sizes.append(resident_mb(server.process.pid))

        tally = asyncio.run(played(server, targets, REQUESTS, seen))
    log = (program.home / "state" / "keepsaid.log").read_text("utf-8")
    faults = [line for line in log.splitlines() if '"trace"' in line]
    counted = dict(sorted(tally.statuses.items()))
    figures(requests=sum(counted.values()), statuses=counted, wrong=len(tally.wrong), faults=len(faults), rss_mb=sizes)
    assert tally.wrong == []
    assert faults == []
    assert sizes[-1] - sizes[_PARTS // 5] < _GROWTH_MAX_MB
