"""Run the benchmarks and print their figures: `python -m bench [--only NAME] [--scale 0.1] [--json FILE]`.

Suites that measure on a data set run where its folder is named: `python -m bench --only links --data irc=FOLDER`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import (
    agents,
    assembling,
    backlog,
    backlog_shared,
    channels,
    coding_agents,
    completions,
    context,
    extensions,
    files,
    gate,
    hung,
    intake,
    intake_shared,
    journal,
    links,
    maintenance,
    path,
    peers,
    processes,
    proxy,
    recall_latency,
    recall_shared,
    schedules,
    startup,
    tasks,
    telegram,
    telemetry,
    turns,
)
from bench.disk import fsync_rate
from bench.processor import addition_rate
from keepsaid.__main__ import tune

SUITES: Mapping[str, Callable[[Path, float], object]] = {
    "intake": intake.measure,
    "peers": peers.measure,
    "intake_shared": intake_shared.measure,
    "processes": processes.measure,
    "backlog": backlog.measure,
    "backlog_shared": backlog_shared.measure,
    "turns": turns.measure,
    "telemetry": telemetry.measure,
    "tasks": tasks.measure,
    "assembling": assembling.measure,
    "hung": hung.measure,
    "startup": startup.measure,
    "recall_latency": recall_latency.measure,
    "recall_shared": recall_shared.measure,
    "maintenance": maintenance.measure,
    "journal": journal.measure,
    "extensions": extensions.measure,
    "schedules": schedules.measure,
    "path": path.measure,
    "telegram": telegram.measure,
    "channels": channels.measure,
    "files": files.measure,
    "agents": agents.measure,
    "completions": completions.measure,
    "proxy": proxy.measure,
    "coding_agents": coding_agents.measure,
}

ON_DATA: Mapping[str, tuple[str, Callable[[Path], object]]] = {
    "links": ("irc", links.measure),
    "context": ("locomo", context.measure),
    "gate": ("locomo", gate.measure),
}
"""Suites that need a data set, each with the name it goes by."""


def main() -> None:
    """Measure what was asked for, in a directory of its own on this disk."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", choices=(*SUITES, *ON_DATA), action="append")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the published sizes")
    parser.add_argument("--dir", type=Path, help="where to measure; a temporary directory by default")
    parser.add_argument("--data", type=_named_folder, action="append", default=[], help="a data set: NAME=FOLDER")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    data = dict(given.data)
    wanted = given.only or [*SUITES, *(name for name, (needs, _) in ON_DATA.items() if needs in data)]
    missing = {ON_DATA[name][0] for name in wanted if name in ON_DATA} - data.keys()
    if missing:
        parser.error(f"say where the data is: --data {min(missing)}=FOLDER")
    tune()
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        figures: dict[str, object] = {
            "machine": machine(),
            "python": addition_rate(),
            "fsync": fsync_rate(Path(folder)),
        }
        for name in wanted:
            figures[name] = _measured(name, Path(folder), given.scale, data)
    text = json.dumps(figures, indent=2)
    sys.stdout.write(text + "\n")
    if given.json:
        given.json.write_text(text + "\n", "utf-8")


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}


def _measured(name: str, folder: Path, scale: float, data: Mapping[str, Path]) -> object:
    if name in ON_DATA:
        needs, measure = ON_DATA[name]
        return measure(data[needs])
    place = folder / name
    place.mkdir()
    return SUITES[name](place, scale)


def _named_folder(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if not folder or not Path(folder).exists():
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=FOLDER of something that is there")
    return name, Path(folder)


if __name__ == "__main__":
    main()
