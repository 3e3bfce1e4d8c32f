"""`keepsaid bench recall` on a file of one's own: what it says of a good one, and of one that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.program import Program, inside

Capture = pytest.CaptureFixture[str]
DOCS: list[dict[str, Any]] = [
    {"id": "1", "text": "The boiler is serviced every May.", "speaker": "Ann", "time": "2026-05-04"},
    {"id": "2", "text": "I feed the owl at night."},
]
QUERIES: list[dict[str, Any]] = [
    {"id": "q", "text": "When is the boiler serviced?", "gold": ["1"], "category": "dates"},
    {"text": "Who feeds the owl?", "gold": ["2"]},
    {"text": "What is the answer to everything?", "gold": []},
]


def line(**fields: object) -> str:
    return json.dumps({"id": "mine", "docs": DOCS, "queries": QUERIES, **fields})


def test_a_file_of_ones_own_is_measured_and_the_home_left_alone(tmp_path: Path, capsys: Capture) -> None:
    program, file = Program(tmp_path / "home"), tmp_path / "mine.jsonl"
    file.write_text(f"{line()}\n\n{line(id='again')}\n", "utf-8")
    groups = inside(program, capsys, "bench", "recall", "--data", f"jsonl={file}", "--words", "--json").json["groups"]
    assert {name: one["questions"] for name, one in groups.items()} == {"all": 4, "corpora 1-5": 4, "dates": 2}
    assert groups["dates"]["R@5"] == groups["dates"]["MRR"] == 1.0
    assert not (tmp_path / "home" / "data").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "asks nothing: it has no question with evidence"),
        (line(queries=QUERIES[2:]), "asks nothing"),
        (f"{line()}\nnot json", "line 2: Invalid JSON"),
        ("[1, 2]", "line 1: Input should be an object"),
        (json.dumps({"id": "mine", "docs": DOCS}), "line 1: queries: Field required"),
        (line(docs=[{"id": "1", "text": 5}]), "line 1: docs.0.text: Input should be a valid string"),
        (line(docs=[{**DOCS[0], "time": "in May"}]), "line 1: Invalid isoformat string: 'in May'"),
        (line(docs=[DOCS[0]]), "line 1: gold names '2', and no doc has that id"),
        (line(docs=[*DOCS, DOCS[0]]), "line 1: two docs have the same id"),
        ("\udcff", "codec can't decode byte 0xff"),
    ],
)
def test_a_file_that_is_none_is_told_with_its_line(tmp_path: Path, capsys: Capture, text: str, told: str) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(text, "utf-8", errors="surrogateescape")
    refused = inside(Program(tmp_path / "home"), capsys, "bench", "recall", "--data", f"jsonl={file}", code=1).err
    assert told in " ".join(refused.split())
    assert "Nothing was changed." in refused
