"""`keepsaid data export` and `import`: memory as a file, with a runtime and without."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside

OFFLINE = {"KEEPSAID_MODELS__CHAT": "none"}


@pytest.fixture
def known(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """A home that knows two things and forgot a third."""
    for name, value in OFFLINE.items():
        monkeypatch.setenv(name, value)
    program = Program(tmp_path / "home")
    inside(program, capsys, "memory", "add", "Ana lives in *Porto*", "--kind", "identity")
    inside(program, capsys, "memory", "add", "The bridge is closed in May")
    inside(program, capsys, "memory", "add", "The code of the locker is 7741")
    inside(program, capsys, "memory", "forget", "--filter", "7741", "--yes")
    return program


def test_memory_moves_to_another_home(known: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was forgotten stays forgotten there, once it has the key."""
    file, other = tmp_path / "all.jsonl", Program(tmp_path / "other")
    told = inside(known, capsys, "data", "export", str(file), "--json").json
    assert (told["counts"]["memories"], told["counts"]["tombstones"]) == (2, 2)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "7741" not in file.read_text("utf-8")
    dry = inside(other, capsys, "data", "import", str(file), "--dry-run", "--json").json
    assert dry["counts"]["memories"] == {"new": 2, "same": 0, "conflict": 0, "rejected": 0}
    assert dry["counts"]["tombstones"]["rejected"] == 2
    assert not (other.home / "data" / "memory.db").exists()
    shutil.copy(known.home / "data" / "forgotten.key", tmp_path)
    done = inside(other, capsys, "data", "import", str(file), "--json").json
    assert (done["counts"]["memories"]["new"], done["counts"]["tombstones"]["new"]) == (2, 2)
    (tmp_path / "forgotten.key").unlink()
    again = inside(other, capsys, "data", "import", str(file))
    assert again.out.splitlines()[4].split() == ["tombstones", "0", "2", "0", "0"]
    assert again.out.splitlines()[1].split() == ["memories", "0", "2", "0", "0"]
    [hit] = inside(other, capsys, "memory", "search", "closed bridge", "--json").json["hits"]
    assert hit["memory"]["text"] == "The bridge is closed in May"
    lifted = inside(other, capsys, "memory", "add", "The code of the locker is 7741")
    assert "this had been forgotten; because you asked for it" in lifted.out + lifted.err


def test_a_file_is_replaced_only_where_that_is_said(
    known: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine"
    file.write_text("of years", "utf-8")
    assert "exists already" in inside(known, capsys, "data", "export", str(file), code=1).err
    assert file.read_text("utf-8") == "of years"
    below = inside(known, capsys, "data", "export", str(file / "x.jsonl"), code=1).err
    assert f"{file} is not a directory that exists" in below
    assert "KS-BUG" not in below
    inside(known, capsys, "data", "export", str(file), "--force", "--format", "markdown")
    page = file.read_text("utf-8")
    assert "### Identity\n\n- Ana lives in \\*Porto\\* (since " in page
    assert "- The bridge is closed in May (since " in page
    folder = tmp_path / "folder"
    folder.mkdir()
    inside(known, capsys, "data", "export", str(folder), "--person", "telegram:bot:42")
    [made] = folder.iterdir()
    assert made.name.startswith("keepsaid-memory-")
    header, end = (json.loads(line) for line in made.read_text("utf-8").splitlines())
    assert (header["persons"], header["counts"]["memories"], end["records"]) == (["telegram:bot:42"], 0, 0)
    for wrong, code in (("--format=xml", 2), ("--person=bob", 1)):
        inside(known, capsys, "data", "export", str(tmp_path / "no"), wrong, code=code)
    assert "[KS-HOME]" in inside(known, capsys, "data", "export", str(tmp_path / "no" / "way"), code=1).err
    assert not (tmp_path / "no").exists()
    backups = inside(known, capsys, "memory", "forget", "--filter", "bridge", "--yes", "--json").json["backups"]
    assert backups == sorted(map(str, (file, made)))
    assert "[KS-HOME]" in inside(Program(tmp_path / "empty"), capsys, "data", "export", str(file), code=1).err


def test_memories_of_mem0_come_in(tmp_path: Path, known: Program, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mem0.json"
    items = [{"id": "a", "memory": "Rows on the lake on Sundays", "user_id": "ana"}, {"id": "b", "memory": "ok"}]
    file.write_text(json.dumps({"results": items}), "utf-8")
    command = ("data", "import", str(file), "--from", "mem0")
    assert "--as 'ana=owner'" in inside(known, capsys, *command, "--dry-run").out
    assert inside(known, capsys, *command, "--as", "*=owner", "--json").json["counts"]["memories"]["new"] == 1
    assert inside(known, capsys, *command, "--as", "ana=owner", "--json").json["counts"]["memories"]["same"] == 1
    for wrong in (("--as", "ana"), ("--trust", "root"), ("--from", "notes")):
        inside(known, capsys, *command, *wrong, code=2)
    inside(known, capsys, *command, "--as", "ana=nowhere:bot:1", code=1)


def test_a_running_instance_takes_over(known: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same words, beside a runtime, for bundles and for mem0."""
    file, other = tmp_path / "all.jsonl", Program(tmp_path / "other", OFFLINE)
    inside(known, capsys, "data", "export", str(file))
    (tmp_path / "mem0.json").write_text('[{"id": "a", "memory": "Rows on the lake on Sundays"}]', "utf-8")
    with other.serving():
        shutil.copy(known.home / "data" / "forgotten.key", tmp_path)
        done = inside(other, capsys, "data", "import", str(file), "--json").json
        assert [one["new"] for one in done["counts"].values()] == [2, 0, 0, 2]
        again = inside(other, capsys, "data", "import", str(file), "--json").json
        assert [one["same"] for one in again["counts"].values()] == [2, 0, 0, 2]
        mem0 = ("data", "import", str(tmp_path / "mem0.json"), "--from", "mem0", "--as", "*=owner", "--json")
        assert inside(other, capsys, *mem0).json["counts"]["memories"]["new"] == 1
        told = inside(other, capsys, "data", "export", str(tmp_path / "again.jsonl"), "--json").json
        assert told["counts"]["memories"] == 3
