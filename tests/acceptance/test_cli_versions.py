"""What is known is put right by command: nothing is lost, and what held when can be asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside

from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.domain.memory import Kind, NewMemory, Source, person_scope
from keepsaid.domain.message import Trust
from keepsaid.testing.clock import CountingIds

Capture = pytest.CaptureFixture[str]
_MAY, _JUNE = 1_777_852_800_000, 1_780_531_200_000


@pytest.fixture
def taught(tmp_path: Path) -> Program:
    """A home that learned where Ann lives, in May and in June."""
    program = Program(tmp_path / "home")
    program.configure("memory: {deadline_ms: 5000}\n")
    program.run("memory", "add", "The kettle stands beside the boiler.")
    asyncio.run(_teach(program.home / "data" / "memory.db"))
    return program


async def _teach(path: Path) -> None:
    store = await open_memories(path, CountingIds())
    told = [
        NewMemory(
            f"m{at}",
            Kind.FACT,
            f"Ann lives in {place}",
            person_scope("owner"),
            Trust.OWNER,
            subject="Ann",
            attribute="lives in",
            value=place,
            said_at=at,
            sources=(Source("message", str(at)),),
        )
        for place, at in (("Lisbon", _MAY), ("Rome", _JUNE))
    ]
    await store.learn(told, _JUNE)
    await store.close()


def found(program: Program, capsys: Capture, *more: str) -> list[str]:
    told = inside(program, capsys, "memory", "search", "where does Ann live", "--json", *more).json
    return [hit["memory"]["value"] for hit in told["hits"] if hit["memory"]["attribute"]]


def test_a_search_prefers_what_holds_and_answers_as_of(taught: Program, capsys: Capture) -> None:
    assert found(taught, capsys) == ["Rome", "Lisbon"]
    assert found(taught, capsys, "--as-of", "2026-05-10") == ["Lisbon"]
    assert found(taught, capsys, "--as-of", "2026-07-01") == ["Rome"]
    assert found(taught, capsys, "--as-of", "2026-04-01") == []
    for why, *options in (
        ("--as-of: 'May' is not a day such as", "--as-of", "May"),
        ("is not a day such as", "--until", "soon"),
        ("there is no kind 'poem'; one of", "--kind", "poem"),
        ("since must not be later than until", "--since", "2026-05-02", "--until", "2026-05-01"),
    ):
        assert why in inside(taught, capsys, "memory", "search", "x", *options, code=2).err


def test_a_search_keeps_to_filters(taught: Program, capsys: Capture) -> None:
    assert found(taught, capsys, "--until", "2026-05-10") == ["Lisbon"]
    assert found(taught, capsys, "--since", "2026-05-20") == ["Rome"]
    assert found(taught, capsys, "--kind", "todo") == []
    assert found(taught, capsys, "--person", "ann") == ["Rome", "Lisbon"]
    assert found(taught, capsys, "--person", "ben") == []


def test_a_memory_is_put_right_and_its_history_told(taught: Program, capsys: Capture) -> None:
    rome = inside(taught, capsys, "memory", "search", "Ann lives Rome", "--json").json["hits"][0]["memory"]
    edited = inside(
        taught, capsys, "memory", "edit", rome["id"], "Ann lives in Porto", "--value", "Porto", "--json"
    ).json
    assert (edited["edited"], edited["how"]) == (rome["id"], "updates")
    versions = inside(taught, capsys, "memory", "history", edited["id"], "--json").json["history"]
    assert [(one["value"], one["state"]) for one in versions] == [
        ("Lisbon", "superseded"),
        ("Rome", "superseded"),
        ("Porto", "active"),
    ]
    assert versions[1]["superseded_by"] == edited["id"]
    assert versions[2]["valid_to"] is None
    assert found(taught, capsys)[0] == "Porto"
    assert "Ann lives in Lisbon" in inside(taught, capsys, "memory", "history", rome["id"]).out
    refused = inside(taught, capsys, "memory", "edit", rome["id"], "?!", code=1)
    assert "Nothing was changed" in refused.err


def test_pins_and_merges(taught: Program, capsys: Capture) -> None:
    [kettle] = inside(taught, capsys, "memory", "search", "kettle", "--json").json["hits"][:1]
    id_ = kettle["memory"]["id"]
    for command, pinned in (("pin", True), ("unpin", False)):
        assert inside(taught, capsys, "memory", command, id_, "--json").json["pinned"] is pinned
        assert inside(taught, capsys, "memory", "show", id_, "--json").json["memory"]["pinned"] is pinned
    taught.run("memory", "add", "Next to the boiler there is the kettle.")
    found = inside(taught, capsys, "memory", "search", "next kettle", "--json").json["hits"]
    [other] = [hit["memory"]["id"] for hit in found if hit["memory"]["text"].startswith("Next")]
    merged = inside(taught, capsys, "memory", "merge", id_, other)
    assert merged.out == f"{id_} now has the sources of 1 duplicate\n"
    assert inside(taught, capsys, "memory", "show", id_, "--json").json["memory"]["evidence"] == 2
    again = inside(taught, capsys, "memory", "merge", id_, other, code=1)
    assert f"{other} was merged into {id_}; use {id_}" in again.err
    boat = taught.run("memory", "add", "Zoe owns three boats.", "--json").json["id"]
    differs = inside(taught, capsys, "memory", "merge", id_, boat, code=1).err
    assert f"{boat} does not seem to say the same as {id_}" in differs
    assert f"keepsaid memory merge {id_} {boat} --anyway" in differs
    assert "boats" in inside(taught, capsys, "memory", "show", boat).out
    inside(taught, capsys, "memory", "merge", id_, boat, "--anyway")
    assert "query must be a text" in inside(taught, capsys, "memory", "search", "", code=2).err
    for asked in (("pin", "mem_x"), ("history", "mem_x"), ("merge", id_, "mem_x")):
        assert "there is no memory mem_x" in inside(taught, capsys, "memory", *asked, code=1).err


def test_a_search_shows_which_memories_are_past(taught: Program, capsys: Capture) -> None:
    lines = inside(taught, capsys, "memory", "search", "where does Ann live").out.splitlines()
    assert lines[0].split() == ["ID", "STATE", "UNTIL", "KIND", "MEMORY"]
    told = [line.split(maxsplit=4)[1:] for line in lines[1:3]]
    assert told == [
        ["active", "-", "fact", "Ann lives in Rome"],
        ["superseded", "2026-06-04", "fact", "Ann lives in Lisbon"],
    ]
    assert max(map(len, lines)) <= 80


def test_changes_to_a_past_memory_name_its_successor(taught: Program, capsys: Capture) -> None:
    told = inside(taught, capsys, "memory", "search", "where does Ann live", "--json").json["hits"]
    rome, lisbon = [hit["memory"]["id"] for hit in told if hit["memory"]["attribute"]]
    for command in (
        ("pin", lisbon),
        ("unpin", lisbon),
        ("archive", lisbon),
        ("share", lisbon, "--to", "global", "--reason", "why not"),
        ("merge", lisbon, rome),
        ("merge", rome, lisbon),
    ):
        refused = inside(taught, capsys, "memory", *command, code=1)
        assert f"{lisbon} was replaced by {rome}; use {rome}" in refused.err
        assert "Nothing was changed." in refused.err
        [hint] = [line.split("try", 1)[1].split() for line in refused.err.splitlines() if line.startswith("  try")]
        assert "Ann lives in Rome" in inside(taught, capsys, *hint[1:]).out
    assert found(taught, capsys) == ["Rome", "Lisbon"]
