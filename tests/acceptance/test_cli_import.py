"""`keepsaid data import` on the files of other programs: dry run, import, again, and what is refused."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside
from tests.acceptance.test_cli_hostile_text import HOSTILE
from tests.property.test_imports import EXAMPLES
from tests.unit.import_cast import BOAT, chatgpt, claude, folder, node, said, written, zipped

FOUND = {
    "chatgpt": ("rowing boat", 3),
    "claude": ("four plum trees", 5),
    "openclaw": ("ferry to work", 6),
    "hermes": ("rye bread", 4),
    "mem0": ("Rows on Sundays", 1),
    "letta": ("club in Drammen", 6),
    "basic-memory": ("filter coffee before noon", 4),
}
"""Words of each example that a search finds, and how many memories it gives."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A home without a model."""
    monkeypatch.setenv("KEEPSAID_MODELS__CHAT", "none")
    return Program(tmp_path / "home")


@pytest.mark.parametrize("form", EXAMPLES)
def test_other_program_is_imported_once(
    tmp_path: Path, program: Program, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    words, count = FOUND[form]
    files = {**EXAMPLES[form], "conversations.json": [BOAT]} if form == "chatgpt" else EXAMPLES[form]
    path = folder(tmp_path / "given", files)
    if len(files) == 1 and form != "basic-memory":
        path /= next(iter(files))
    command = ("data", "import", str(path), "--as", "ana=owner")
    dry = inside(program, capsys, *command, "--dry-run", "--json").json
    assert (dry["from"], dry["trust"], dry["counts"]["memories"]["new"]) == (form, "known", count)
    assert sum(one["new"] for one in dry["kinds"].values()) == count
    assert sum(one["lines"] for one in dry["reasons"]) == dry["counts"].get("lines", {}).get("rejected", 0)
    assert not (program.home / "data" / "memory.db").exists()
    done = inside(program, capsys, *command, "--json").json
    assert done["kinds"] == dry["kinds"]
    shown = inside(program, capsys, *command)
    assert shown.out.splitlines()[1].split() == ["memories", "0", str(count), "0", "0"]
    hits = inside(program, capsys, "memory", "search", words, "--json").json["hits"]
    [memory] = [one["memory"] for one in hits if words.lower() in one["memory"]["text"].lower()][:1]
    assert all(source.startswith(f"import:{form}:") for source in memory["sources"])
    assert memory["scope"] == "person:owner"


def test_imported_messages_are_kept_beside_a_running_instance_and_not_answered(
    tmp_path: Path, program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    path = zipped(tmp_path / "export.zip", {"conversations.json": [BOAT], "user.json": {}})
    with program.serving():
        assert inside(program, capsys, "data", "import", str(path), "--json").json["kinds"]["episode"]["new"] == 3
        assert inside(program, capsys, "data", "import", str(path), "--json").json["kinds"]["episode"]["same"] == 3
        assert inside(program, capsys, "inbox", "ls", "--json").json["messages"] == []
        hits = inside(program, capsys, "memory", "search", "rowing boat", "--json").json["hits"]
        assert "rowing boat" in hits[0]["memory"]["text"]


@pytest.mark.parametrize(
    "given",
    [
        ("conversations.json", json.dumps([BOAT])[:-30], "is not whole"),
        ("conversations.json", "[" * 10_000, "none of the formats"),
        ("conversations.json", "[" + '{"mapping": {"a":' * 10_000, "nested too deeply"),
        ("notes.txt", "only words", "none of the formats"),
        ("export.zip", b"PK\x05\x06" + bytes(18), "holds no file"),
        ("export.zip", b"PK\x03\x04broken", "damaged archive"),
    ],
)
def test_what_cannot_be_read_is_refused_whole(
    tmp_path: Path, program: Program, capsys: pytest.CaptureFixture[str], given: tuple[str, str | bytes, str]
) -> None:
    """`given` is the name of a file, its content, and why it is refused."""
    name, content, why = given
    path = written(tmp_path / name, content)
    for more in ((), ("--dry-run",)):
        ran = inside(program, capsys, "data", "import", str(path), *more, code=1)
        assert why in ran.err
        assert "Nothing was imported." in ran.err
        assert "KS-BUG" not in ran.err


def test_named_format_is_believed_and_another_refused(
    tmp_path: Path, program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "conversations.json", [claude("c")])
    wrong = inside(program, capsys, "data", "import", str(path), "--format", "chatgpt", "--json").json
    assert [one["why"] for one in wrong["reasons"]] == ["it is not a conversation: it has no mapping"]
    for form in ("openclaw", "hermes", "basic-memory", "keepsaid", "mem0"):
        ran = inside(program, capsys, "data", "import", str(path), "--format", form, code=0 if form == "mem0" else 1)
        assert "KS-BUG" not in ran.err
    inside(program, capsys, "data", "import", str(path), "--format", "notion", code=2)


def test_hostile_text_of_a_file_is_shown_with_escapes(
    tmp_path: Path, program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = [node("a", None, said(HOSTILE, "user", HOSTILE)), node("b", "a", said(HOSTILE, "user", HOSTILE))]
    odd = node("c", "b", said("x", "user", "x", content={"content_type": HOSTILE}))
    conversation = chatgpt(f"c {HOSTILE}", [*twice, odd], "c", title=HOSTILE)
    session = {"id": HOSTILE, "source": HOSTILE, "user_id": HOSTILE, "messages": [{"role": "user", "content": "tea"}]}
    for name, content in {"conversations.json": [conversation], "s.jsonl": json.dumps(session)}.items():
        path = written(tmp_path / f"given {HOSTILE.replace('/', '')[:40]}" / name, content)
        for more in ((), ("--json",)):
            ran = inside(program, capsys, "data", "import", str(path), *more)
            hidden = {one for one in ran.out + ran.err if unicodedata.category(one) in ("Cc", "Cf")} - {"\n", "\t"}
            assert hidden == set()
    shown = inside(program, capsys, "memory", "ls")
    assert "\\u{1b}[31mred" in shown.out
