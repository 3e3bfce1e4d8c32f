"""Requests to remember and to forget are understood in twelve languages, and talk of memory is none, on lines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from keepsaid.domain.statements import asks_to_remember, extract_statements
from keepsaid.text import memory_commands
from keepsaid.text.memory_commands import object_to_forget

_HERE = Path(__file__).parent
_OUTER = " .,;:!?。！？、\"'"


def _lines(*kinds: str) -> list[tuple[str, str, str]]:
    """The language, message and content of the lines of some kinds."""
    rows = (line.split("\t") for line in (_HERE / "memory_commands.tsv").read_text("utf-8").splitlines())
    return [(language, said, content) for language, kind, said, content in rows if kind in kinds]


def _bare(text: str) -> str:
    return text.strip(_OUTER).casefold()


def test_the_content_of_a_request_is_found() -> None:
    lines = _lines("remember")
    missed = [
        (line, found)
        for line in lines
        if _bare(line[2]) not in map(_bare, found := [one.text for one in extract_statements(line[1])])
    ]
    assert Counter(language for language, _, _ in lines) == dict.fromkeys(
        ("en", "de", "es", "pt", "fr", "it", "nl", "pl", "ru", "zh", "ja", "ko"), 10
    )
    assert len(missed) <= 15, missed
    assert all(asks_to_remember(line[1]) for line in lines if (line, []) not in missed)


def test_other_lines_are_no_request_to_remember() -> None:
    others = _lines("forget", "never", "other")
    wrong = [line for line in others if asks_to_remember(line[1])]
    assert len(others) == 240
    assert len(wrong) <= 2, wrong


def test_requests_to_forget_are_found() -> None:
    lines = _lines("forget")
    missed = [line for line in lines if object_to_forget(line[1]) is None]
    assert len(missed) <= 16, missed
    others = _lines("remember", "never", "other")
    wrong = [(line, found) for line in others if (found := object_to_forget(line[1])) is not None]
    assert len(wrong) <= 2, wrong


def test_talk_asks_for_nothing() -> None:
    files = (_HERE / "talk.txt", _HERE.parent / "recall" / "everyday" / "small_talk.txt")
    talk = [line for file in files for line in file.read_text("utf-8").splitlines()]
    said = [line for line in talk if line and not line.startswith("#")]
    wrong = [line for line in said if asks_to_remember(line) or object_to_forget(line) is not None]
    assert len(said) >= 1_000
    assert wrong == []


def test_every_template_has_a_key() -> None:
    """A command without a key of its language would never be looked for."""
    without = [
        (language, line)
        for (language, section), lines in memory_commands._tables().items()
        if section in ("remember", "ask", "forget")
        for line in lines
        if language not in set(memory_commands._languages_in(line))
    ]
    assert without == []
