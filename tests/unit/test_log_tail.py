"""A log that is followed: every whole line, once, also across a rotation."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from keepsaid.interfaces.cli.logs import Tail


def write(file: Path, *lines: int, end: str = "\n") -> None:
    with file.open("a", encoding="utf-8") as log:
        log.write("\n".join(json.dumps({"n": line}) for line in lines) + end)


def read(tail: Tail) -> list[int]:
    return [line["n"] for line in tail.more()]


def test_no_line_is_lost_between_two_looks(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with closing(Tail(file)) as tail:
        assert read(tail) == []
        write(file, 1, 2)
        assert read(tail) == [1, 2]
        write(file, 3)
        write(file, 4, end="")
        assert read(tail) == [3]
        write(file, end="\n")
        assert read(tail) == [4]


def test_a_rotated_log_is_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "log"
    write(file, 1)
    with closing(Tail(file)) as tail:
        assert read(tail) == [1]
        write(file, 2)
        file.rename(tmp_path / "log.1")
        assert read(tail) == [2]
        write(file, 3)
        assert read(tail) == [3]
        write(file, 4)
        file.rename(tmp_path / "log.2")
        write(file, 5)
        assert read(tail) == [4, 5]
