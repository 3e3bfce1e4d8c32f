"""`keepsaid memory maintain` and `stats`, and the archive that they fill."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.acceptance.program import Program, inside

DAY_MS = 86_400_000


def aged(program: Program, days: int) -> None:
    """Let everything that is remembered have been said so long ago."""
    with closing(apsw.Connection(str(program.home / "data" / "memory.db"))) as db:
        db.execute(
            "UPDATE memory SET said_at = said_at - ?1, recorded_at = recorded_at - ?1, row_seal = NULL",
            (days * DAY_MS,),
        )


def test_what_nobody_used_is_archived_and_found_where_the_archive_is_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Program(tmp_path / "home", {"KEEPSAID_MODELS__CHAT": "none"})
    assert inside(program, capsys, "memory", "stats", "--json").json["counts"] == {}
    added = inside(program, capsys, "memory", "add", "Ana lives in Porto", "--json").json["id"]
    inside(program, capsys, "memory", "add", "Ana is the owner", "--kind", "identity")
    aged(program, 1_000)
    dry = inside(program, capsys, "memory", "maintain", "--dry-run", "--json").json
    assert (dry["found"]["fade"], dry["archived"]) == (1, 1)
    assert inside(program, capsys, "memory", "stats", "--json").json["states"] == {"active": 2}
    done = inside(program, capsys, "memory", "maintain", "--json").json
    assert (done["changed"]["fade"], done["archived"], done["over"]) == (1, 1, True)
    assert "0 memories faded, 0 archived" in inside(program, capsys, "memory", "maintain").out
    held = inside(program, capsys, "memory", "stats", "--json").json
    assert held["states"] == {"active": 1, "archived": 1}
    assert held["maintained_at"] is not None
    assert inside(program, capsys, "memory", "search", "Porto", "--json").json["hits"] == []
    [hit] = inside(program, capsys, "memory", "search", "Porto", "--archived", "--json").json["hits"]
    assert (hit["memory"]["id"], hit["memory"]["state"]) == (added, "archived")
    assert "Ana lives in Porto" in inside(program, capsys, "memory", "show", added).out
