"""Play seeds: `python -m keepsaid_testkit.simulator --seed N`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from keepsaid_testkit.simulator.disk import FileDisk
from keepsaid_testkit.simulator.faults import FAULTS
from keepsaid_testkit.simulator.play import Result, play
from keepsaid_testkit.simulator.watch import Watched


def main() -> int:
    """Play what the command line asks for; 1 when a promise was broken."""
    asked = _parse_arguments()
    way = FAULTS[asked.fault][0] if asked.fault else Watched
    broken = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        result = _played(seed, way, files=asked.files)
        broken += bool(result.breaches)
        if asked.trace:
            sys.stdout.write("\n".join(result.lines) + "\n")
        if result.breaches:
            sys.stdout.write(result.tail() + "\n")
        if asked.count == 1:
            sys.stdout.write(f"seed {seed}: {len(result.lines)} lines, digest {result.digest}\n")
    sys.stdout.write(f"{asked.count} seeds, {broken} with broken promises\n")
    return 1 if broken else 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m keepsaid_testkit.simulator")
    parser.add_argument("--seed", type=int, required=True, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--files", action="store_true", help="the operational store in a file, not in memory")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="a runtime that breaks a promise")
    parser.add_argument("--trace", action="store_true", help="print everything that happened")
    return parser.parse_args()


def _played(seed: int, way: type[Watched], *, files: bool) -> Result:
    if not files:
        return play(seed, way=way)
    with TemporaryDirectory() as folder:
        return play(seed, FileDisk(Path(folder)), way)


if __name__ == "__main__":
    sys.exit(main())
