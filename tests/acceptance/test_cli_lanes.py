"""`keepsaid inbox lanes`: listed, shown, summarised and begun anew, beside a running instance and without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from tests.acceptance.program import Program, inside

from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ThreadedModelServer

Capture = pytest.CaptureFixture[str]
CHAT = "root:terminal"
LANE = {"channel": "terminal", "account": "default", "conversation": "terminal", "key": CHAT}
ABOUT = [["show"], ["summary"], ["reset"], ["compact", "--now"]]


@pytest.fixture
def talked(tmp_path: Path) -> Program:
    """A home in which three messages were answered."""
    program = Program(tmp_path / "home")
    program.configure("models: {chat: none}\nbuffer: {window_ms: 0}\ncompaction: {keep: 1}\n")
    program.run("chat", given="we decided to sell the boat\nmy boat is blue\nwhat else?\n")
    return program


@contextmanager
def perhaps_serving(program: Program, *, serving: bool) -> Iterator[None]:
    """With or without a runtime beside the commands."""
    if not serving:
        yield
        return
    with program.serving():
        yield


def add_lanes(program: Program, *topics: str) -> None:
    """Lanes beside the one of the chat, as a channel with topics makes them."""
    db = apsw.Connection(str(program.home / "data" / "buffer.db"))
    names = [row[1] for row in db.execute("PRAGMA table_info(lane)") if row[1] not in ("id", "key")]
    kept = ", ".join(names)
    for topic in topics:
        added = f"INSERT INTO lane (key, {kept}) SELECT ?, {kept} FROM lane WHERE key = ?"
        db.execute(added, (f"topic:terminal:{topic}", CHAT))
    db.close()


@pytest.mark.parametrize("serving", [False, True])
def test_a_lane_is_listed_shown_summarised_and_begun_anew(talked: Program, capsys: Capture, *, serving: bool) -> None:
    with perhaps_serving(talked, serving=serving):
        [line] = inside(talked, capsys, "inbox", "lanes", "ls", "--json").json["lanes"]
        assert (line["lane"], line["session"], line["summary"]) == (LANE, "active", None)
        due = inside(talked, capsys, "inbox", "lanes", "compact", CHAT, "--json").json
        assert (due["lane"], due["told"]) == (LANE, "There was nothing to summarise.")
        inside(talked, capsys, "inbox", "lanes", "compact", CHAT, "--now")
        summary = inside(talked, capsys, "inbox", "lanes", "summary", CHAT, "--json").json
        assert (summary["summary"]["version"], summary["versions"]) == (1, [1])
        assert "we decided to sell the boat" in summary["summary"]["text"]
        shown = inside(talked, capsys, "inbox", "lanes", "show", CHAT, "--json").json
        assert shown["summary"] == summary["summary"]
        left = [one["text"] for one in shown["tail"]]
        assert left[-1] == "what else?"
        assert "we decided to sell the boat" not in left
        reset = inside(talked, capsys, "inbox", "lanes", "reset", CHAT, "--json").json
        assert reset["lane"] == LANE
        assert reset["records"] > 0
        after = inside(talked, capsys, "inbox", "lanes", "show", CHAT, "--json").json
        assert (after["summary"], after["tail"]) == (None, [])
        assert len(inside(talked, capsys, "inbox", "ls", "--json").json["messages"]) == 3


def test_every_session_is_shown_with_why_it_began_and_ended(talked: Program, capsys: Capture) -> None:
    inside(talked, capsys, "inbox", "lanes", "compact", CHAT, "--now")
    talked.run("chat", "-m", "and the car?")
    newest, first = inside(talked, capsys, "inbox", "lanes", "show", CHAT, "--json").json["sessions"]
    assert (newest["state"], newest["started_reason"], newest["ended_at"]) == ("active", "compaction", None)
    assert newest["waits_for_collection"] is False
    assert (first["state"], first["started_reason"], first["ended_reason"]) == ("ended", "first message", "compaction")
    assert first["records"] == {"first": 1, "last": 6}
    assert (first["collect_up_to"], first["collect_reason"]) == (6, "records")
    assert first["started_at"] <= first["ended_at"] <= newest["started_at"]
    table = inside(talked, capsys, "inbox", "lanes", "show", CHAT).out
    assert f"{first['ended_at']}  compaction  1-6" in table
    assert "to 6 (records)" in table
    one = inside(talked, capsys, "inbox", "lanes", "show", CHAT, "--sessions", "1", "--json").json
    assert one["sessions"] == [newest] == [one["session"]]


def test_a_question_is_shown_until_it_is_answered(tmp_path: Path, capsys: Capture) -> None:
    question = {"question": "Which boat?", "type": "selection", "options": ["blue", "red"]}
    with ThreadedModelServer(Script(Call("ask_for", question), Say("Which boat?"), default=Say("ok"))) as server:
        settings = {"OPENAI_API_KEY": "k", "KEEPSAID_MODELS__BASE_URL": server.url}
        program = Program(tmp_path / "home", settings)
        program.configure("models: {chat: openai/scripted}\nbuffer: {window_ms: 0}\n")
        program.run("chat", "-m", "sell it")
        [slot] = inside(program, capsys, "inbox", "lanes", "show", CHAT, "--json").json["slots"]
        assert (slot["question"], slot["expected"], slot["options"]) == ("Which boat?", "selection", ["blue", "red"])
        assert slot["opened_at"] < slot["expires_at"]
        line = next(
            line for line in inside(program, capsys, "inbox", "lanes", "show", CHAT).out.splitlines() if "blue" in line
        )
        assert line.split("  ")[:2] == ["Which boat?", "selection: blue, red"]
        assert line.endswith(f"{slot['person']}  {slot['expires_at']}")
        program.run("chat", "-m", "red")
        assert inside(program, capsys, "inbox", "lanes", "show", CHAT, "--json").json["slots"] == []


@pytest.mark.parametrize("serving", [False, True])
def test_a_lane_that_is_not_there_or_not_the_only_one_is_refused(
    talked: Program, capsys: Capture, *, serving: bool
) -> None:
    add_lanes(talked, "a", "b", "ab")
    before = (talked.home / "data" / "buffer.db").read_bytes()
    with perhaps_serving(talked, serving=serving):
        for command, *options in ABOUT:
            unknown = inside(talked, capsys, "inbox", "lanes", command, "nobody", *options, code=1).err
            assert "there is no lane nobody" in unknown
            assert "Nothing was changed." in unknown
            assert "keepsaid inbox lanes ls" in unknown
            several = inside(talked, capsys, "inbox", "lanes", command, "terminal", *options, code=1).err
            assert "terminal names 4 lanes: " in several
            assert "and others" in several
            two = inside(talked, capsys, "inbox", "lanes", command, "topic:", *options, code=1).err
            assert "topic: names 3 lanes: " in two
            assert "and others" not in two
        exact = inside(talked, capsys, "inbox", "lanes", "show", "topic:terminal:a", "--json").json
        assert exact["lane"] == {**LANE, "key": "topic:terminal:a"}
        beginning = inside(talked, capsys, "inbox", "lanes", "show", "root", "--json").json
        assert beginning["lane"] == LANE
    if not serving:
        assert (talked.home / "data" / "buffer.db").read_bytes() == before


def test_a_home_without_lanes_says_so(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    listed = inside(program, capsys, "inbox", "lanes", "ls", "--json")
    assert listed.json["lanes"] == []
    assert listed.err
    for command, *options in ABOUT:
        assert (
            "there is no lane room" in inside(program, capsys, "inbox", "lanes", command, "room", *options, code=1).err
        )
    assert not (program.home / "data").exists()


def test_what_makes_no_sense_is_refused(talked: Program, capsys: Capture) -> None:
    for arguments in (
        ["ls", "--limit", "0"],
        ["ls", "-n", "many"],
        ["show"],
        ["show", CHAT, "--sessions", "0"],
        ["summary", CHAT, "--version", "0"],
        ["reset"],
        ["reset", CHAT, "more"],
        ["compact", CHAT, "--later"],
    ):
        assert inside(talked, capsys, "inbox", "lanes", *arguments, code=2).err
    none = inside(talked, capsys, "inbox", "lanes", "summary", CHAT, code=1).err
    assert "has no summary yet" in none
    inside(talked, capsys, "inbox", "lanes", "compact", CHAT, "--now")
    missing = inside(talked, capsys, "inbox", "lanes", "summary", CHAT, "--version", "9", code=1).err
    assert "has versions 1" in missing
