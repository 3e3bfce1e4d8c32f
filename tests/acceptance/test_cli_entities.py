"""The people and things that memories mention, at the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside

Capture = pytest.CaptureFixture[str]
NOTES = ("I live in Porto.", "My wife is called Anna Kovac", "Anna likes the Algarve, says Annie", "I moved to Lisbon")


def remembered(home: Path, capsys: Capture) -> Program:
    program = Program(home)
    for note in NOTES:
        inside(program, capsys, "memory", "add", note)
    return program


def test_entities_are_listed_and_shown_with_what_holds_and_what_held(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    assert "nothing was ever stored here" in inside(program, capsys, "memory", "entities", "ls").err
    program = remembered(tmp_path / "home", capsys)
    told = inside(program, capsys, "memory", "entities", "ls", "--kind", "place", "--json").json
    assert {one["key"]: one["memories"] for one in told["entities"]} == {"place:porto": 1, "place:lisbon": 1}
    page = inside(program, capsys, "memory", "entities", "show", "owner").out
    held, before = page.split("## What held before")
    assert re.search(r"- I moved to Lisbon \(\d{4}-\d\d-\d\d; owner mem_\w{13}\)", held)
    assert re.search(r"- I live in Porto. \(\d{4}-\d\d-\d\d, until \d{4}-\d\d-\d\d; owner mem_\w{13}\)", before)
    assert "Lisbon (place): 1" in before
    [shown] = inside(program, capsys, "memory", "entities", "show", "Porto", "--json").json["pages"]
    assert (shown["facts"], len(shown["past"]), shown["entity"]["kind"]) == ([], 1, "place")


def test_two_entities_become_one_by_command(tmp_path: Path, capsys: Capture) -> None:
    program = remembered(tmp_path / "home", capsys)
    merged = inside(program, capsys, "memory", "entities", "merge", "person:anna kovac", "Annie").out
    assert merged == "person:anna kovac  1 mention moved\n"
    for pair, why in (
        (("Annie", "Anna Kovac"), "no memory mentions 'Annie'"),
        (("Anna Kovac", "Anna"), "are one entity already"),
        (("Nobody", "Anna"), "no memory mentions 'Nobody'"),
    ):
        assert why in inside(program, capsys, "memory", "entities", "merge", *pair, code=1).err
    assert "no kind of entity 'dog'" in inside(program, capsys, "memory", "entities", "ls", "--kind", "dog", code=1).err


def test_pages_are_exported_and_named_where_something_is_forgotten(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    folder = tmp_path / "pages"
    assert "Nothing was written" in inside(program, capsys, "memory", "entities", "export", str(folder), code=1).err
    program = remembered(tmp_path / "home", capsys)
    assert "6 pages" in inside(program, capsys, "memory", "entities", "export", str(folder)).out
    index = (folder / "index.md").read_text("utf-8")
    [page] = re.findall(r"\[Porto\]\((.+)\): place", index)
    assert "I live in Porto." in (folder / page).read_text("utf-8")
    assert (folder / page).stat().st_mode & 0o077 == 0
    gone = inside(program, capsys, "memory", "forget", "--filter", "Porto", "--yes")
    assert str(folder) in gone.out + gone.err
    (tmp_path / "file").write_text("")
    blocked = str(tmp_path / "file")
    assert "cannot be written" in inside(program, capsys, "memory", "entities", "export", blocked, code=1).err
    assert blocked not in inside(program, capsys, "memory", "forget", "--filter", "Lisbon", "--yes").out


def test_the_entity_that_stays_keeps_its_name(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    for note in ("We call the boat Wanda", "I painted Wanda", "My dog hates Rex"):
        inside(program, capsys, "memory", "add", note)
    inside(program, capsys, "memory", "entities", "merge", "Rex", "Wanda")
    assert inside(program, capsys, "memory", "entities", "show", "Wanda").out.startswith("# Rex\n")


def test_what_was_replaced_holds_again_when_it_is_added_again(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    for first, second in (("Kim plays the harp", "Kim plays the cello"), ("I live in Porto.", "I live in Faro.")):
        added = inside(program, capsys, "memory", "add", first, "--json").json["id"]
        inside(program, capsys, "memory", "edit", added, second)
        again = inside(program, capsys, "memory", "add", first, "--json").json["id"]
        assert again != added
        shown = inside(program, capsys, "memory", "show", again, "--json").json["memory"]
        assert (shown["text"], shown["state"]) == (first, "active")
        assert inside(program, capsys, "memory", "add", first, "--json").json["id"] == again, "once is enough"
