"""`keepsaid memory audit`: one of each trouble is made, found, and gone once the command it names was run."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.acceptance.program import Program, inside

from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.adapters.system.machine import SystemClock, SystemIds
from keepsaid.domain.bulletin import Edition, bulletin_key
from keepsaid.domain.maintenance import DAY_MS
from keepsaid.domain.memory import OWNER, Kind, NewMemory, Source, person_scope
from keepsaid.domain.message import Trust

NOW = SystemClock().now_ms()
_TOKEN = "ghp_" + "a1B2c3D4e5" * 4
_OWNER = person_scope(OWNER)


def fact(key: str, text: str, slot: tuple[str, str, str] = ("", "", ""), **fields: object) -> NewMemory:
    """Something known since yesterday, because the owner said so."""
    subject, attribute, value = slot
    told: dict[str, Any] = {
        "said_at": NOW - DAY_MS,
        "sources": (Source("person", key),),
        "subject": subject,
        "attribute": attribute,
        "value": value,
        **fields,
    }
    return NewMemory(key, Kind.FACT, text, _OWNER, Trust.OWNER, **told)


HEALTHY = (
    fact("h1", "The boiler is serviced in May every year"),
    fact("h2", "The bicycle is repaired in the shop at the corner"),
    fact("h3", "Ann lives in Porto", ("Ann", "lives in", "Porto"), said_at=NOW - 9 * DAY_MS),
    fact("h4", "Ann lives in Rome", ("Ann", "lives in", "Rome")),
    fact("h5", "Ann likes jazz", ("Ann", "likes", "jazz")),
    fact("h6", "Ann likes tea", ("Ann", "likes", "tea")),
)

TROUBLED = (
    fact("d1", "The cellar key hangs behind the green door"),
    fact("d2", "The cellar key hangs behind the green door."),
    fact("c1", "Bob lives in Porto", ("Bob", "lives in", "Porto"), said_at=NOW - 9 * DAY_MS),
    fact("c2", "Bob lives in Lisbon", ("Bob", "lives in", "Lisbon")),
    fact("s1", "The fair is open until it ends", said_at=NOW - 9 * DAY_MS, valid_to=NOW - 3 * DAY_MS),
    fact("u1", "The attic holds seven empty suitcases", said_at=NOW - 300 * DAY_MS),
    fact("k1", f"The deploy token is {_TOKEN}"),
    fact("o1", "The gate was painted by the neighbours", sources=(Source("message", "4711"),)),
    fact("e1", "The owner keeps bees on the roof of the house", sources=(Source("reply", "99"),)),
    replace(fact("message:98", "I keep bees on the roof"), kind=Kind.EPISODE),
    replace(
        fact(bulletin_key(_OWNER), "Facts: none"),
        kind=Kind.BULLETIN,
        metadata=Edition(1, "x", (12345,)).as_json,
        sources=(),
    ),
)


async def kept(path: Path, memories: tuple[NewMemory, ...], *, learn: bool) -> None:
    """Memories as they were before anybody saw to them, without the redactor."""
    store = await open_memories(path, SystemIds())
    try:
        if learn:
            await store.learn(memories, NOW)
        else:
            await store.keep(memories, NOW)
    finally:
        await store.close()


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    """A home in which all is well."""
    made = Program(tmp_path / "home", {"KEEPSAID_MODELS__CHAT": "none"})
    inside(made, capsys, "memory", "add", "The kettle whistles in the key of G", "--kind", "fact")
    asyncio.run(kept(made.home / "data" / "memory.db", HEALTHY, learn=True))
    return made


def change(program: Program, part: str, *statements: str) -> None:
    """Break what no command breaks."""
    with closing(apsw.Connection(str(program.home / "data" / f"{part}.db"))) as db:
        for statement in statements:
            db.execute(statement)


def troubles(told: dict[str, Any]) -> dict[str, int]:
    """How many cases there are of each trouble."""
    return {check["trouble"]: check["count"] for check in told["checks"]}


def test_nothing_is_wrong_in_a_healthy_home(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    told = inside(program, capsys, "memory", "audit", "--json").json
    assert set(troubles(told).values()) == {0}
    assert "All is well." in inside(program, capsys, "memory", "audit").out


def test_one_of_each_is_found_and_its_command_puts_it_right(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(kept(program.home / "data" / "memory.db", TROUBLED, learn=False))
    change(
        program,
        "memory",
        # what was shown says the same as what was learned from the reply
        "UPDATE memory SET text = 'The owner keeps bees on the roof of the house', row_seal = NULL"
        " WHERE key = 'message:98'",
        "UPDATE memory SET recorded_at = said_at, row_seal = NULL WHERE key = 'u1'",
        "INSERT INTO association VALUES (1, 2, 'related_to', 1, 0, NULL)",
        "INSERT INTO mention VALUES (1, 2, 'x', 'x', 1, 0, NULL)",
        "INSERT INTO entity VALUES (7, 'thing', 0, NULL)",
        "INSERT INTO memory_source VALUES (1, 0, 'message', '1', '', NULL)",
        "INSERT INTO memory_statement VALUES ('gone', 1, 0, 0, NULL, 0, 1, NULL)",
        "UPDATE memory SET superseded_by = 4, row_seal = NULL WHERE key = 'h2'",
        "INSERT INTO vector (space, piece_id, memory_id, audience, vector) VALUES (1, 999999, 1, 1, x'00')",
        "DELETE FROM memory_stale",
    )
    change(
        program,
        "buffer",
        "INSERT INTO transcript (lane_id, position, session_id, turn_id, role, text, created_at)"
        " VALUES (1, 1, 1, 99, 'assistant', '', 0)",
        f"ATTACH '{program.home / 'data' / 'memory.db'}' AS m",
        "INSERT INTO injection SELECT 99, id, 1, 'text', NULL FROM m.memory WHERE key = 'message:98'",
    )
    said = inside(program, capsys, "memory", "audit", code=5)
    assert _TOKEN not in said.out
    found = inside(program, capsys, "memory", "audit", "--json", code=5).json
    assert troubles(found) == {
        "duplicates": 1,
        "contradictions": 1,
        "stale": 2,
        "never recalled": 1,
        "secrets": 1,
        "orphaned": 8,
        "echo loops": 1,
    }
    assert _TOKEN not in str(found)
    fixes = dict.fromkeys(case["fix"] for check in found["checks"] for case in check["cases"])
    for fix in fixes:
        inside(program, capsys, *shlex.split(fix)[1:])
    assert troubles(inside(program, capsys, "memory", "audit", "--json").json) == dict.fromkeys(troubles(found), 0)
