"""The log's rate limit: what repeats is written so often a minute, and then counted; nothing else is held back."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from keepsaid.app.redaction import plain_redactor
from keepsaid.interfaces.cli.logs import PER_MINUTE, LogRate, keep_log


def record(at: float, message: str = "%s failed", *args: object, level: int = logging.ERROR) -> logging.LogRecord:
    made = logging.LogRecord("keepsaid.http", level, "", 0, message, args, None)
    made.created = at
    return made


def test_a_line_that_repeats_is_written_so_often_a_minute_and_then_counted() -> None:
    rate = LogRate(per_minute=3)
    written = [one.getMessage() for n in range(10) for one in rate.take(record(n, "%s failed", n))]
    assert written == ["0 failed", "1 failed", "2 failed"]
    later = [one.getMessage() for one in rate.take(record(61, "%s failed", "x"))]
    assert later == ["9 failed (repeated 7 times more within a minute)", "x failed"]
    assert list(rate.rest()) == []


def test_other_lines_are_not_held_back_and_tell_what_was() -> None:
    rate = LogRate(per_minute=1)
    for n in range(5):
        list(rate.take(record(n)))
    told = [one.getMessage() for one in rate.take(record(70, "something else", level=logging.INFO))]
    assert told == ["%s failed (repeated 4 times more within a minute)", "something else"]
    assert [one.levelno for one in rate.take(record(71, level=logging.WARNING))] == [logging.WARNING]


def test_a_clock_that_was_set_back_begins_a_new_minute() -> None:
    rate = LogRate(per_minute=1)
    assert [len(list(rate.take(record(at)))) for at in (1_000, 1_001, 10)] == [1, 0, 2]


def test_kinds_beyond_bounds_take_no_more_memory() -> None:
    rate = LogRate(per_minute=1)
    for n in range(5_000):
        assert len(list(rate.take(record(n / 1_000, f"line {n}")))) == 1
    assert len(rate._windows) == 500


@pytest.mark.parametrize("count", [10_000])
def test_ten_thousand_lines_of_one_kind_leave_the_log_small(tmp_path: Path, count: int) -> None:
    file, root = tmp_path / "log", logging.getLogger()
    before = list(root.handlers)
    keep_log(file, "info", plain_redactor(), text=False)
    (handler,) = [one for one in root.handlers if one not in before]
    try:
        for _ in range(count):
            logging.getLogger("asyncio").error("socket.accept() out of system resource")
        logging.getLogger("asyncio").error("another thing")
    finally:
        root.removeHandler(handler)
        handler.close()
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    # the ten thousand may fall into two minutes
    assert PER_MINUTE + 2 <= len(lines) <= 2 * PER_MINUTE + 3
    assert "repeated" in lines[-1]["msg"]
    assert any(line["msg"] == "another thing" for line in lines)
