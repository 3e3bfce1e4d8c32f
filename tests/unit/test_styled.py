"""Text is cut into parts that a medium takes: whole, in order, and never within a character."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.adapters.channels.markdown import read_markdown
from keepsaid.text.styled import PartLimits, Style, StyledText, StyleSpan, split, utf16_units

_TEXTS = st.text(st.sampled_from("ab .\n*_`[]()#>-1|\u0301\u200d\U0001f469\ufe0f灯。"), max_size=200)


def size(text: str) -> int:
    return sum(map(utf16_units, text))


@given(_TEXTS, st.integers(2, 40), st.integers(1, 4))
def test_the_parts_joined_are_the_whole(markdown: str, units: int, spans: int) -> None:
    """Joined, no character and no style is lost; each part is one that the medium takes (spec: channels, C22)."""
    styled = read_markdown(markdown)
    parts = [*split(styled, PartLimits(units, spans, utf16_units))]
    assert "".join(part.text for part in parts) == styled.text
    assert all(0 < size(part.text) <= units for part in parts)
    at, shown = 0, set[tuple[int, Style]]()
    for part in parts:
        assert len(part.spans) <= spans or len(part.text) == 1
        assert all(0 <= span.start < span.end <= len(part.text) for span in part.spans)
        shown |= {(at + n, span.style) for span in part.spans for n in range(span.start, span.end)}
        at += len(part.text)
    wanted = {(n, span.style) for span in styled.spans for n in range(span.start, span.end)}
    assert shown == wanted


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two three four", "one two "),
        ("one. two three", "one. two "),
        ("first\n\nsecond line", "first\n\n"),
        ("x" * 30, "x" * 10),
        ("abcdefghi\u0301j", "abcdefgh"),
        ("灯台が回らない。灯台が", "灯台が回らない。"),
    ],
)
def test_a_part_ends_where_it_reads_best(text: str, first: str) -> None:
    parts = [*split(StyledText(text), PartLimits(10 if not text.startswith("abc") else 9, 5, utf16_units))]
    assert parts[0].text == first


def test_marks_without_end_are_cut_too() -> None:
    """A hundred thousand combining marks are no reason to stand still."""
    text = "a" + "\u0301" * 100_000
    assert unicodedata.combining(text[1])
    parts = [*split(StyledText(text), PartLimits(4_096, 100, utf16_units))]
    assert "".join(part.text for part in parts) == text
    assert len(parts) < 30


def test_a_pair_of_surrogates_is_not_cut() -> None:
    parts = [*split(StyledText("\U0001f600" * 5), PartLimits(5, 9, utf16_units))]
    assert [len(part.text) for part in parts] == [2, 2, 1]


def test_styles_are_read() -> None:
    styled = read_markdown("# Plan\n\n1. **buy** [oil](https://x.org)\n2. trim `wick`\n\n> soon\n\n```sh\nlight\n```")
    assert styled.text == "Plan\n\n1. buy oil\n2. trim wick\n\nsoon\n\nlight"
    told = {(styled.text[span.start : span.end], span.style, span.detail) for span in styled.spans}
    assert told == {
        ("Plan", Style.BOLD, ""),
        ("buy", Style.BOLD, ""),
        ("oil", Style.LINK, "https://x.org"),
        ("wick", Style.CODE, ""),
        ("soon", Style.QUOTE, ""),
        ("light", Style.BLOCK, "sh"),
    }


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("", ""),
        ("<b>no</b> HTML", "<b>no</b> HTML"),
        ("a\n\n- b\n  - c\n- d\n\ne", "a\n\n• b\n  • c\n• d\n\ne"),
        ("|a|b|\n|-|-|\n|1|2|", "|a|b|\n|-|-|\n|1|2|"),
        ("one\n***\ntwo", "one\n\n———\n\ntwo"),
        ("![a lamp](http://x/y.png)", "a lamp"),
        ("3. c\n4. d", "3. c\n4. d"),
        ("no *end", "no *end"),
    ],
)
def test_what_is_no_style_stays_text(markdown: str, text: str) -> None:
    assert read_markdown(markdown).text == text


def test_nested_without_end_is_read() -> None:
    """Deep nesting is read as text, in time that grows with its length alone."""
    assert ">" not in read_markdown(">" * 10 + " deep").text
    assert len(read_markdown("[" * 20_000).text) == 20_000
    assert StyleSpan(0, 2, Style.BOLD) in read_markdown("**hi**").spans
