"""`keepsaid bench latency`: makes its own store, asks it with all legs, and leaves the home alone."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.program import Program


def test_it_measures_a_store_of_its_own_and_can_keep_it(tmp_path: Path) -> None:
    program, folder = Program(tmp_path / "home"), tmp_path / "kept"
    words = ("bench", "latency", "--n", "400", "--questions", "20", "--saved", "20", "--keep", str(folder), "--json")
    told = program.run(*words).json
    assert told["memories"] == 400
    assert 0 < told["recall"]["p50_ms"] <= told["recall"]["p95_ms"]
    assert told["recall"]["cpu_p50_ms"] > 0
    assert told["save"]["found_by_the_next_query"] == told["save"]["saved"] == 20
    assert told["text_overlap_at_10"] == 1, "so few are never capped"
    assert told["start"]["first_answer_s"] > 0
    assert told["start"]["memory_mb"] > 10
    assert "missing" in told["query_embedding"], "this home has no embedder"
    assert (folder / "memory.db").exists()
    assert not (program.home / "data").exists(), "nothing was stored in the home"
