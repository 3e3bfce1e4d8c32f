from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

import pytest
from tests.unit.import_cast import BOAT, NOW, claude, folder, written, zipped

from keepsaid.errors import InputError
from keepsaid.services.imports import files as limits
from keepsaid.services.imports.drafts import dict_in, kind_of_words, list_in, name_in, short, text_in, time_in
from keepsaid.services.imports.files import open_files
from keepsaid.services.imports.formats import NAMES, format_of
from keepsaid.services.imports.json_items import items_in, objects_in
from keepsaid.services.imports.notes import statements

EXPORTS: dict[str, tuple[str, dict[str, object]]] = {
    "chatgpt in a folder": ("chatgpt", {"conversations.json": [BOAT], "user.json": {}}),
    "chatgpt in parts": ("chatgpt", {"conversations-000.json": [BOAT]}),
    "claude": ("claude", {"conversations.json": [claude("c")], "users.json": []}),
    "a home of openclaw": ("openclaw", {"openclaw.json": {}, "workspace/MEMORY.md": "- tea"}),
    "sessions of openclaw": ("openclaw", {"agents/main/sessions/s.jsonl": "{}"}),
    "a workspace of openclaw": ("openclaw", {"SOUL.md": "Kind", "memory/2026-01-02.md": "- tea"}),
    "a home of hermes": ("hermes", {"memories/USER.md": "tea", "config.yaml": ""}),
    "an export of hermes": ("hermes", {"sessions.jsonl": '{"id": "s", "messages": []}'}),
    "mem0": ("mem0", {"mem0.json": {"results": [{"id": "a", "memory": "tea"}]}}),
    "an agent file": ("letta", {"agent.af": {"agents": [], "blocks": []}}),
    "passages": ("letta", {"passages.json": [{"id": "passage-1", "text": "tea", "archive_id": "a"}]}),
    "basic-memory": ("basic-memory", {"tea.md": "---\ntitle: Tea\npermalink: tea\n---\n- [taste] Green tea"}),
    "a bundle": ("keepsaid", {"memory.jsonl": '{"type": "keepsaid memory", "format": 1}\n'}),
}


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("form", ["folder", "zip", "file"])
def test_format_is_recognised_by_content(tmp_path: Path, name: str, form: str) -> None:
    format_, files = EXPORTS[name]
    path = zipped(tmp_path / "given.zip", files) if form == "zip" else folder(tmp_path / "given", files)
    if form == "file":
        if len(files) > 1 or format_ == "openclaw":
            return
        path /= next(iter(files))
    assert format_of(path) == format_


def test_every_format_has_an_example() -> None:
    assert {format_ for format_, _ in EXPORTS.values()} == set(NAMES)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "not JSON", b"\xff\xfe\x00", '{"a": [1, 2', "PK\x03\x04 no archive"]
)
def test_unknown_content_is_refused_with_the_formats(tmp_path: Path, content: str | bytes) -> None:
    with pytest.raises(InputError) as error:
        format_of(written(tmp_path / "given.json", content))
    assert error.value.safe == "Nothing was imported."
    assert "basic-memory" in error.value.what or "damaged archive" in error.value.what


def test_missing_empty_and_special_paths_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    for name, why in {
        "missing": "cannot be read",
        "pipe": "neither a file nor a folder",
        "empty": "holds no file",
        "empty.zip": "holds no file",
    }.items():
        with pytest.raises(InputError, match=why):
            open_files(tmp_path / name)


def test_links_in_a_folder_and_an_archive_are_not_followed(tmp_path: Path) -> None:
    written(tmp_path / "secret.txt", "secret")
    given = folder(tmp_path / "given", {"a.md": "tea"})
    (given / "b.md").symlink_to(tmp_path / "secret.txt")
    (given / "loop").symlink_to(given)
    os.mkfifo(given / "pipe")
    files = open_files(given)
    assert (files.names, files.links) == (("a.md",), ("b.md", "loop"))
    with zipfile.ZipFile(tmp_path / "given.zip", "w") as archive:
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("a.md", "tea")
    files = open_files(tmp_path / "given.zip")
    assert (files.names, files.links) == (("a.md",), ("link.md",))


def test_file_that_became_a_link_since_is_refused(tmp_path: Path) -> None:
    given = folder(tmp_path / "given", {"a.md": "tea"})
    files = open_files(given)
    (given / "a.md").unlink()
    (given / "a.md").symlink_to(written(tmp_path / "secret.txt", "secret"))
    with pytest.raises(InputError, match="cannot be read"):
        files.text("a.md")


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "bomb.zip", {"conversations.json": b" " * 70_000_000})
    with pytest.raises(InputError, match="would unpack to 70,000,000 bytes"):
        open_files(path)
    monkeypatch.setattr(limits, "FILES_MAX", 1)
    with pytest.raises(InputError, match="2 files; 1 are allowed"):
        open_files(zipped(tmp_path / "many.zip", {"a": b"", "b": b""}))
    with pytest.raises(InputError, match="more than 1 files"):
        open_files(folder(tmp_path / "many", {"a": "", "b": ""}))


def test_encrypted_and_damaged_archives_are_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "given.zip", {"conversations.json": [BOAT] * 20})
    raw = bytearray(path.read_bytes())
    raw[60:90] = bytes(30)
    damaged = open_files(written(tmp_path / "damaged.zip", bytes(raw)))
    with pytest.raises(InputError, match="cannot be read"):
        list(items_in(damaged, "conversations.json"))
    raw = bytearray(path.read_bytes())
    raw[6] |= 1
    raw[raw.rindex(b"PK\x01\x02") + 8] |= 1
    locked = open_files(written(tmp_path / "locked.zip", bytes(raw)))
    with pytest.raises(InputError, match="cannot be read"):
        list(items_in(locked, "conversations.json"))


def test_items_are_read_over_the_borders_of_chunks(tmp_path: Path) -> None:
    items = [{"n": n, "text": 'æøå \\ " ] } , ' * 40_000} for n in range(4)]
    path = written(tmp_path / "given.json", items)
    assert list(items_in(open_files(path), "given.json")) == items
    pretty = written(tmp_path / "given.json", "\ufeff [ {} ,\n\t{ } ]\n ")
    assert list(items_in(open_files(pretty), "given.json")) == [{}, {}]


def test_lines_that_are_no_objects_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "given.jsonl", '{"a": 1}\n\n[]\nno\n{"a": 2}' + "\n" + "[" * 10_000)
    lines = list(objects_in(open_files(path), "given.jsonl"))
    assert lines == [(1, {"a": 1}), (3, None), (4, None), (5, {"a": 2}), (6, None)]


def test_notes_are_divided_into_statements() -> None:
    text = """---
# Tastes
<!-- a comment -->
- Drinks green tea
  in the morning
1. [x] Eats rye bread
- Oslo

**Work**
A paragraph
of two lines.
```
- code
```
| a | table |
> Quoted words
"""
    assert [(one.heading, one.text) for one in statements(text)] == [
        ("Tastes", "Drinks green tea in the morning"),
        ("Tastes", "Eats rye bread"),
        ("Tastes", "Oslo"),
        ("Work", "A paragraph of two lines."),
        ("Work", "Quoted words"),
    ]


def test_values_are_read_for_what_they_are() -> None:
    assert (name_in({"id": " "}, "id"), name_in({"id": 5}, "id"), name_in({"id": True}, "id")) == ("", "5", "")
    assert (len(short("x" * 900)), short("x")) == (32, "x")
    assert (dict_in([]), list_in({})) == ({}, [])
    assert text_in(["a", {"type": "text", "text": "b"}, {"type": "image", "text": "c"}, {"text": 5}, 6]) == "a\nb"
    assert [kind_of_words(word) for word in ("Goals", "food_preferences", "tea", 5)] == [
        "goal",
        "preference",
        "fact",
        "fact",
    ]
    assert time_in("2024-05-01 10:00", NOW) == 1_714_557_600_000
    assert [time_in(one, NOW) for one in (float("nan"), float("inf"), 10**400, "9999-12-31T23:59:59-12:00", 0)] == [
        None
    ] * 5
