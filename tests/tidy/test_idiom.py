"""Docstrings, comments, texts and pages use the words of the field: the idioms of a list are not used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.tidy.source import ROOT, Source, apply, expect_none

SOURCES = (
    "src/keepsaid",
    "packages/testkit/src",
)

BE = r"(?:am|is|are|was|were|be|been|being)"
PEOPLE = r"(?:who|nobody|somebody|everybody|anybody|no one|someone|they|people|listeners?)"
IDIOMS = {
    r"anew": "again, or new",
    r"so many": "a number, or a limit",
    r"so much of": "the part or the limit",
    r"(?:came|comes?|became|becomes?|become) of": "the result, the state or the outcome",
    r"(?:stand|stands|stood|standing) for": "represents, or replaces",
    r"(?:stand|stands|stood|standing) in (?:the )?place of": "replaces",
    r"lets? (?:\w+ ){1,3}(?:come|go|be|rest|pass)": "the verb for what happens: allow, resume, release, skip",
    r"lets? go": "release",
    r"(?<!there\s)(?:is|are|was|were) no (?!longer\b|more\b|such\b)\w+": "is not a",
    rf"{BE} (?:not |never |also |only |then |still |at once |already )?told": "receives, is notified, or reads",
    r"(?:tell|tells|told|telling) (?:\w+ ){0,3}of": "notifies, reports or lists",
    rf"{PEOPLE} (?:may |can |could |must |also |then |there )?(?:hears?|heard)": "can read, or receives",
    rf"{BE} (?:not |never |also |only |then |still )?heard": "readable, visible or received",
    r"heard (?:by|in|from|there|where)": "readable, visible or received",
    r"put(?:s|ting)? away": "archives",
    r"at hand": "available",
    r"how (?:it|they|each|one) fares?": "its status",
}
SPACE = r"\s+"
NAME = re.compile(r"`[^`\n]*`")
LISTED = tuple(
    (re.compile(rf"\b(?:{idiom.replace(' ', SPACE)})\b", re.IGNORECASE), better) for idiom, better in IDIOMS.items()
)


def texts(source: Source) -> Iterator[tuple[int, str]]:
    """Docstrings and other literals of several words, and comments; the lines of one comment are one text."""
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value
    block: list[str] = []
    for (line, comment), (following, _) in pairwise((*source.comments, (0, ""))):
        block.append(comment.lstrip("#"))
        if following != line + 1:
            yield line - len(block) + 1, "\n".join(block)
            block = []


def found(path: str, first: int, text: str) -> Iterator[str]:
    """Findings in a text that begins at a line; names in backticks may be any."""
    prose = NAME.sub(lambda name: "`" * len(name[0]), text)
    for idiom, better in LISTED:
        for match in idiom.finditer(prose):
            line = first + text.count("\n", 0, match.start())
            yield f"{path}:{line}: {' '.join(match[0].split())!r}; plainer: {better}"


def idioms(source: Source) -> Iterator[str]:
    for first, text in texts(source):
        yield from found(source.path, first, text)


def test_no_idiom_in_sources() -> None:
    apply(idioms, *SOURCES)


def test_no_idiom_in_the_changelog() -> None:
    expect_none(found("CHANGELOG.md", 1, (ROOT / "CHANGELOG.md").read_text("utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        "The index is made anew.",
        "So many rows at most.",
        "It says what became\n    of a message.",
        "A summary stands for the records.",
        "Let a schedule come again.",
        "The body is no JSON.",
        "The owner is told.",
        "Events tell the owner of it.",
        "The memories a listener may hear.",
    ],
)
def test_an_idiom_is_found(text: str) -> None:
    assert len(list(idioms(Source("a.py", f'"""{text}"""\n')))) == 1


def test_an_idiom_is_found_in_a_comment_of_two_lines() -> None:
    [finding] = idioms(Source("a.py", "x = 1\n# the result is\n# told later\n"))
    assert finding.startswith("a.py:2: 'is told'")


def test_names_and_plain_words_are_left() -> None:
    text = '"""There is no reply, and `anew` is no longer read."""\nSTATEMENTS["anew"]\n'
    assert list(idioms(Source("a.py", text))) == []
