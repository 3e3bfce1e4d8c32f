"""The benchmark of reply links counts as the data set's own evaluation does, on a log made up here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from bench import links

LOG = """
=== ann has joined #boats
[23:58] <ann> how do I mend a mast?
[23:59] <bob> does the printer work?
[00:01] <cat> ann: with glue
[00:01]  * bob kicks the printer
[00:02] <dan> bob: which printer?
""".strip()
LINKS = "0 0 -\n1 1 -\n2 2 -\n1 3 -\n2 4 -\n4 5 -\n2 5 -"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set of one file."""
    (tmp_path / "2020-01-01_00.ascii.txt").write_text(LOG + "\n", "utf-8")
    (tmp_path / "2020-01-01_00.annotation.txt").write_text(LINKS + "\n", "utf-8")
    return tmp_path


def test_a_log_is_read_with_its_times_over_midnight(folder: Path) -> None:
    log = links.read(folder / "2020-01-01_00.annotation.txt")
    assert [(one.ref, one.speaker, one.at // 60_000) for one in log.said] == [
        ("1", "ann", 1_438),
        ("2", "bob", 1_439),
        ("3", "cat", 1_441),
        ("4", "bob", 1_441),
        ("5", "dan", 1_442),
    ]
    assert (log.said[3].text, log.lines, len(log.links)) == ("kicks the printer", 6, 7)


def test_pairs_are_counted_and_shares_follow(folder: Path) -> None:
    log = links.read(folder / "2020-01-01_00.annotation.txt")
    answers = {"1": None, "2": None, "3": "1", "4": "3", "5": "4"}
    counted = links.score(log, lambda _history, new: answers[new.ref])
    assert counted == links.Score(right=5, guessed=6, true=7, people=5, people_right=4)
    assert counted.shares() == {"precision": 83.3, "recall": 71.4, "f": 76.9, "people_right": 80.0, "people": 5}
    assert counted + counted == links.Score(10, 12, 14, 10, 8)


def test_only_what_stands_before_a_message_is_shown(folder: Path) -> None:
    log = links.read(folder / "2020-01-01_00.annotation.txt")
    seen: list[tuple[list[str], str]] = []
    links.score(log, lambda history, new: seen.append(([one.ref for one in history], new.ref)))
    assert seen == [(["1", "2", "3", "4"][: n - 1], str(n)) for n in range(1, 6)]


def test_the_figures_tell_the_files_apart(folder: Path) -> None:
    for ending in ("ascii.txt", "annotation.txt"):
        (folder / f"{links.TUNED_ON[0]}.{ending}").write_bytes((folder / f"2020-01-01_00.{ending}").read_bytes())
    figures = links.measure(folder)
    tuned, held_out = figures["tuned_on"], figures["held_out"]
    assert isinstance(tuned, Mapping)
    assert isinstance(held_out, Mapping)
    assert (tuned["files"], held_out["files"]) == ([links.TUNED_ON[0]], ["2020-01-01_00"])
    assert tuned["f"] == held_out["f"] > 70


def test_without_data_it_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"docs/develop/benchmarks\.md"):
        links.measure(tmp_path)


def test_a_foreign_reader_gets_the_same_answers() -> None:
    told = [("", "joined", True), ("ann", "how do I mend a mast?", False), ("bob", "is it dinner?", False)]
    told.append(("cat", "ann: with glue", False))
    messages = [{"nick": nick, "text": text, "system": system} for nick, text, system in told]
    assert [links.predict(messages, n) for n in (0, 3)] == [0, 1]
