"""Why did it say that: a turn, a memory, and what did not come to mind, explained on eighty columns."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.acceptance.program import Program, inside

Capture = pytest.CaptureFixture[str]
BOILER, KETTLE, HARBOUR = (
    "The boiler is serviced every May.",
    "The kettle stands beside the boiler.",
    "Ana counts comets at the observatory above the old harbour, where the wind never rests and nobody goes.",
)


@pytest.fixture
def asked(tmp_path: Path) -> Program:
    """A home that knows three things and was asked about the boiler."""
    program = Program(tmp_path / "home")
    program.configure("memory: {deadline_ms: 5000}\n")
    for text in (BOILER, KETTLE, HARBOUR):
        program.run("memory", "add", text)
    program.run("chat", "-m", "when is the boiler serviced?")
    return program


def known(program: Program, capsys: Capture) -> dict[str, str]:
    memories = inside(program, capsys, "memory", "ls", "--kind", "fact", "--json").json["memories"]
    return {one["text"]: one["id"] for one in memories}


def narrow(text: str) -> str:
    assert max(map(len, text.splitlines())) <= 80, text
    return text


def test_a_turn_is_explained_on_eighty_columns(asked: Program, capsys: Capture) -> None:
    told = narrow(inside(asked, capsys, "why").out)
    chosen, _, left = told.partition("LEFT OUT")
    assert re.search(r"recall      the turn waited [\d.]+ ms   text 2 in [\d.]+ ms", chosen)
    assert "missing     vector: no embedder" in chosen
    first = rf"mem_\w{{13}}  \d\.\d{{3}}  text #1 \([\d.]+\)\n    \[fact\] {re.escape(BOILER)}\n    \S"
    assert re.search(first, chosen)
    assert left.startswith(" 0\n") or KETTLE in left


def test_a_memory_knows_where_it_came_up(asked: Program, capsys: Capture) -> None:
    ids = known(asked, capsys)
    turn = inside(asked, capsys, "why", "--json").json["turn"]["id"]
    shown = inside(asked, capsys, "why", "--memory", ids[BOILER])
    assert f"CAME UP IN 1 of the turns on record\n  {turn}" in narrow(shown.out)
    told = inside(asked, capsys, "why", "--memory", ids[BOILER], "--json").json
    assert [(use["turn"], use["how"]) for use in told["uses"]] == [(turn, "injected")]
    assert "CAME UP IN no turn" in narrow(inside(asked, capsys, "why", "--memory", ids[HARBOUR]).out)
    assert "there is no memory mem_x" in inside(asked, capsys, "why", "--memory", "mem_x", code=1).err


def test_why_it_did_not_come_to_mind(asked: Program, capsys: Capture) -> None:
    ids = known(asked, capsys)
    turn = inside(asked, capsys, "why", "--json").json["turn"]["id"]
    told = inside(asked, capsys, "why", turn, "--not", ids[HARBOUR])
    assert "no leg had it among its best: it shares no word" in narrow(told.out)
    asked.run("memory", "add", "The boiler is new.")
    later = inside(asked, capsys, "why", turn, "--not", known(asked, capsys)["The boiler is new."], "--json").json
    assert later["absence"]["stage"] == "later"
    shown = inside(asked, capsys, "why", turn, "--not", ids[BOILER], "--json").json["absence"]
    assert (shown["stage"], shown["found"]["id"]) == ("shown", ids[BOILER])
    assert "there is no memory" in inside(asked, capsys, "why", "--not", "mem_x", code=1).err


def test_what_was_wrong_is_said_and_taken_back(asked: Program, capsys: Capture) -> None:
    boiler = known(asked, capsys)[BOILER]
    turn = inside(asked, capsys, "why", "--json").json["turn"]["id"]
    done = inside(asked, capsys, "memory", "wrong", boiler, "--turn", turn)
    assert done.out == f"{boiler}  is left out there from the next turn on\n"
    assert re.search(rf"wrong       {boiler} for {turn}, said by owner", narrow(inside(asked, capsys, "why", turn).out))
    asked.run("chat", "-m", "so when is the boiler serviced?")
    absent = inside(asked, capsys, "why", "--not", boiler, "--json").json["absence"]
    assert (absent["stage"], absent["found"]["cause"]) == ("left_out", "wrong")
    inside(asked, capsys, "memory", "wrong", boiler, "--turn", turn, "--undo")
    asked.run("chat", "-m", "once more, when is the boiler serviced?")
    assert inside(asked, capsys, "why", "--not", boiler, "--json").json["absence"]["stage"] == "shown"
    assert "withdrawn" in narrow(inside(asked, capsys, "why", "--memory", boiler).out)


def test_what_a_turn_was_not_shown_cannot_be_wrong_for_it(asked: Program, capsys: Capture) -> None:
    turn = inside(asked, capsys, "why", "--json").json["turn"]["id"]
    harbour = known(asked, capsys)[HARBOUR]
    told = inside(asked, capsys, "memory", "wrong", harbour, "--turn", turn, code=1).err
    assert f"{harbour} was not shown to {turn}" in told
    assert f"keepsaid why --memory {harbour}" in told
    assert "trn_x names no turn" in inside(asked, capsys, "memory", "wrong", harbour, "--turn", "trn_x", code=1).err


def test_a_turn_that_was_a_command_alone_says_so(asked: Program, capsys: Capture, tmp_path: Path) -> None:
    asked.run("chat", "-m", "/tasks")
    told = narrow(inside(asked, capsys, "why").out)
    assert "context     none: /tasks is a command, carried out without a model" in told
    assert "CHOSEN" not in told
    absent = narrow(inside(asked, capsys, "why", "--not", known(asked, capsys)[BOILER]).out)
    assert "nothing was searched: /tasks is a command" in absent
    drawn = inside(asked, capsys, "why", "--svg", str(tmp_path / "turn.svg"), code=1)
    assert "recorded no context to draw: /tasks is a command" in drawn.err


def test_the_picture_shows_the_context_and_the_ranks(asked: Program, capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "turn.svg"
    inside(asked, capsys, "why", "--svg", str(file))
    root = ElementTree.fromstring(file.read_text("utf-8"))
    bar, ranks = root.findall("{http://www.w3.org/2000/svg}svg")
    assert "tokens" in "".join(bar.itertext())
    told = "".join(ranks.itertext())
    assert "in the end" in told
    assert BOILER[:20] in told
    assert float(ranks.attrib["y"]) == float(bar.attrib["height"])
