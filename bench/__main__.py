"""Run the benchmarks and print their figures: `python -m bench [--only NAME] [--scale 0.1] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

from bench import backlog, hung, intake, peers, startup, turns
from bench.disk import fsync_rate

SUITES = {
    "intake": intake.measure,
    "peers": peers.measure,
    "backlog": backlog.measure,
    "turns": turns.measure,
    "hung": hung.measure,
    "startup": startup.measure,
}


def main() -> None:
    """Measure what was asked for, in a directory of its own on this disk."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", choices=SUITES, action="append")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the published sizes")
    parser.add_argument("--dir", type=Path, help="where to measure; a temporary directory by default")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    sys.setswitchinterval(0.0005)
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        figures: dict[str, object] = {"machine": machine(), "fsync": fsync_rate(Path(folder))}
        for name in given.only or SUITES:
            place = Path(folder) / name
            place.mkdir()
            figures[name] = SUITES[name](place, given.scale)
    text = json.dumps(figures, indent=2)
    sys.stdout.write(text + "\n")
    if given.json:
        given.json.write_text(text + "\n", "utf-8")


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}


if __name__ == "__main__":
    main()
