"""Transcripts of coding agents: which lines are recorded, and where the next read begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit import agent_hooks_cast as cast
from tests.unit.agent_hooks_cast import Transcript, given, projects, stored
from tests.unit.http_cast import site

from keepsaid.domain.agent_hook import public_text, session_name, transcript_line
from keepsaid.services.agent_files import TranscriptMark, next_prompt_key, read_transcript

_LINE = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"content": "hello"}}


def read(**fields: object) -> str:
    """The text that is recorded of a line with these fields; "" for none."""
    line = transcript_line(json.dumps({**_LINE, **fields}).encode(), "s")
    return "" if line is None else line.text


def test_a_prompt_and_an_answer_are_recorded() -> None:
    assert read() == "hello"
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert read(type="assistant", message={"content": blocks}) == "one\n\ntwo"
    opened = {"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}
    assert read(message={"content": [opened, {"type": "text", "text": "mend it"}]}) == "mend it"
    assert read(message={"content": "do it <system-reminder>a note</system-reminder>"}) == "do it"


@pytest.mark.parametrize(
    "fields",
    [
        {"isSidechain": True},
        {"isMeta": True},
        {"isCompactSummary": True},
        {"isApiErrorMessage": True},
        {"promptSource": "system"},
        {"type": "summary"},
        {"type": "file-history-snapshot"},
        {"sessionId": "another"},
        {"uuid": 7},
        {"message": "text"},
        {"message": {}},
        {"message": {"content": 7}},
        {"message": {"content": [7, {"type": "text"}, {"type": "text", "text": 7}]}},
        {"message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "noise"}]}},
        {"message": {"content": "<command-name>/clear</command-name>"}},
        {"message": {"content": "<local-command-stdout>done</local-command-stdout>"}},
        {"message": {"content": "[Request interrupted by user]"}},
        {"message": {"content": "<private>all of it</private>"}},
        {"message": {"content": "  "}},
    ],
)
def test_other_lines_are_not(fields: dict[str, object]) -> None:
    assert read(**fields) == ""


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"type": "user"}'])
def test_what_is_no_line_of_a_transcript_is_passed_over(raw: bytes) -> None:
    assert transcript_line(raw, "s") is None


def test_a_private_part_is_left_out_also_where_nothing_closes_it() -> None:
    assert public_text("a <PRIVATE>b</Private> c <private>d\ne</private>") == "a  c"
    assert public_text("a <private>b") == "a"
    assert public_text("a <private>" + "b" * 300_000 + "</private> c") == "a"


def test_a_session_of_other_characters_is_named_by_its_hash() -> None:
    assert session_name("8d3c-4b.1_e") == "8d3c-4b.1_e"
    assert len({session_name(one) for one in ("a b", "a#b", "a" * 200, "\ud800", "")}) == 5
    assert "#" not in session_name("a#b")


def test_reading_goes_on_where_it_ended(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "s")
    transcript.turn("one", "first", "p1")
    part = read_transcript(transcript.path, "s", TranscriptMark())
    assert [(line.text, line.answer) for line in part.lines] == [("one", False), ("first", True)]
    assert part.lines[0].key == "prompt:p1"
    assert part.mark.position == transcript.path.stat().st_size
    assert read_transcript(transcript.path, "s", part.mark) == ((), part.mark)
    transcript.turn("two", "second", "p2")
    again = read_transcript(transcript.path, "s", part.mark)
    assert [line.text for line in again.lines] == ["two", "second"]
    whole = read_transcript(transcript.path, "s", TranscriptMark())
    assert whole.lines == (*part.lines, *again.lines), "a new process finds the same keys"
    transcript.path.write_text("", "utf-8")
    transcript.turn("three", "third", "p3")
    assert [line.text for line in read_transcript(transcript.path, "s", again.mark).lines] == ["three", "third"]


def test_a_second_text_under_one_prompt_has_a_key_of_its_own(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "s")
    transcript.write("user", "one", promptId="p1")
    uuid = transcript.write("user", "more of it", promptId="p1")
    lines = read_transcript(transcript.path, "s", TranscriptMark()).lines
    assert [line.key for line in lines] == ["prompt:p1", uuid]


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "s")
    transcript.write("user", "x" * 9_000_000)
    transcript.write("user", "y" * 17_000_000)
    transcript.write("user", "short")
    part = read_transcript(transcript.path, "s", TranscriptMark())
    assert [line.text for line in part.lines] == ["short"]
    assert part.mark.position == transcript.path.stat().st_size


def test_a_prompt_without_a_name_has_the_key_that_its_line_will_have(tmp_path: Path) -> None:
    transcript, mark = Transcript(tmp_path, "s"), TranscriptMark()
    keys = []
    for _ in range(3):
        keys += [next_prompt_key(transcript.path, "s", mark, "continue")] * 2
        assert keys[-1] == next_prompt_key(transcript.path, "s", mark, "continue")
        transcript.turn("continue", "done")
        mark = read_transcript(transcript.path, "s", mark).mark
    lines = read_transcript(transcript.path, "s", TranscriptMark()).lines
    assert [line.key for line in lines if not line.answer] == keys[::2]
    assert len(set(keys)) == 3
    assert next_prompt_key(None, "s", TranscriptMark(), "continue") == keys[0]
    assert next_prompt_key(tmp_path / "none.jsonl", "s", TranscriptMark(), "continue") == keys[0]


async def test_an_answer_that_came_before_its_transcript_is_stored_once(tmp_path: Path) -> None:
    """Claude Code without a terminal writes the transcript after `Stop`."""
    root = tmp_path / "home"
    project = cast.repository(tmp_path / "api", f"git@github.com:acme/{tmp_path.name}.git")
    async with site(root, keys=cast.keys(root / "projects")) as one:
        transcript = Transcript(projects(one) / "a", "s")
        path = {"transcript_path": str(transcript.path)}
        await given(one, cast.hook("UserPromptSubmit", project, "s", prompt="question", prompt_id="p1", **path))
        await given(one, cast.hook("Stop", project, "s", last_assistant_message="answer", **path))
        before = [("user", "question"), ("assistant", "answer")]
        assert await stored(one, project, "s") == before
        transcript.turn("question", "answer", "p1")
        transcript.turn("again", "answer", "p2")
        await given(one, cast.hook("SessionEnd", project, "s", **path))
        assert await stored(one, project, "s") == [*before, ("user", "again"), ("assistant", "answer")]
