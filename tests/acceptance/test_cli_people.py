"""Who is who, and who hears what, by the owner's command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside

Capture = pytest.CaptureFixture[str]
ANN, BEN = "http:default:ann", "http:default:ben"


def test_people_are_joined_listed_and_split(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    assert inside(program, capsys, "memory", "people", "ls").err
    inside(program, capsys, "memory", "add", "The boiler is serviced every May.")
    listed = inside(program, capsys, "memory", "people", "ls")
    assert re.search(r"-\s+owner\s+owner\s+1\s", listed.out)
    joined = inside(program, capsys, "memory", "people", "join", ANN, BEN)
    assert re.fullmatch(rf"per_\w{{13}}  {ANN}, {BEN}\n", joined.out)
    told = inside(program, capsys, "memory", "people", "ls", "--json").json
    [person] = told["people"]
    assert [one["name"] for one in person["identities"]] == [ANN, BEN]
    assert [one["name"] for one in told["seen"]] == ["owner"]
    assert len(re.findall(person["id"], inside(program, capsys, "memory", "people", "ls").out)) == 2
    assert inside(program, capsys, "memory", "people", "split", ANN).out == f"{ANN}  is a person alone\n"
    assert inside(program, capsys, "memory", "people", "ls", "--json").json["people"] == []


def test_a_name_joins_nobody(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    for names, why in (
        (("Ann", "Ben"), "'Ann' names nobody: it takes CHANNEL:ACCOUNT:SENDER, or owner"),
        ((ANN, ANN), "it takes two who are not the same already"),
        ((ANN, "nowhere:default:ben"), "there is no channel 'nowhere'"),
    ):
        told = inside(program, capsys, "memory", "people", "join", *names, code=1).err
        assert why in told
        assert "Nothing was changed." in told
    assert f"{ANN} is joined with nobody" in inside(program, capsys, "memory", "people", "split", ANN, code=1).err


def test_a_memory_is_shared_with_a_reason_that_is_kept(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    added = inside(program, capsys, "memory", "add", "The boiler is serviced every May.", "--json").json["id"]
    refused = inside(program, capsys, "memory", "share", added, "--to", "person", "--reason", "mine", code=1).err
    assert "others were present, so it does not belong to one person" in refused
    done = inside(program, capsys, "memory", "share", added, "--to", "global", "--reason", "the house may know")
    assert done.out == f"{added}  global  (was person:owner)\n"
    again = inside(program, capsys, "memory", "share", added, "--to", "global", "--reason", "again").out
    assert again == f"{added}  global  (already has this scope)\n"
    shown = inside(program, capsys, "memory", "show", added).out
    assert "from person:owner by owner: the house may know" in shown
    assert (
        "mem_x names no memory"
        in inside(program, capsys, "memory", "share", "mem_x", "--to", "global", "--reason", "x", code=1).err
    )
