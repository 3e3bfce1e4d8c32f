"""Redaction in windows: the same secrets as in one search."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepsaid.adapters.redaction import contextual, formats
from keepsaid.adapters.redaction.formats import WINDOW, matches
from keepsaid.adapters.redaction.redactor import PatternRedactor

PATTERNS = [
    formats._NUMBER,
    formats._TOKEN,
    contextual._LOGIN,
    contextual._ELEMENT,
    contextual._PAIR,
    contextual._KEY,
    contextual._BEARER,
    contextual._SEED,
    contextual.KEYWORD,
    contextual.CAMEL,
    contextual.CJK,
    *(pattern for _, _, pattern in formats.FORMATS),
]
PARTS = [
    *(
        "password",
        " token ",
        " is ",
        "hunter2hunter2",
        "4111 1111 1111 1111",
        "curl -u ann:secret1 ",
        "\n",
        " ",
        "a",
        "_",
    ),
    *(
        "<password>abcd1234</password>",
        'key="token" value="abcd1234"',
        "sk_live_0123456789abcdefABCD",
        "密码",
        "myPassword",
    ),
    *("Bearer abcdefghijKLMNOP0123456789", "my_key: aB3aB3aB3aB3aB3aB3aB3aB3", "https://ann:pw123@host.example "),
]


@pytest.mark.parametrize("window", [1, 64])
@settings(max_examples=25)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=25))
def test_windows_give_the_matches_of_one_search(window: int, parts: list[str]) -> None:
    text = "".join(parts)
    for pattern in PATTERNS:
        found = [one.span() for one in matches(pattern, text, window=window)]
        assert found == [one.span() for one in pattern.finditer(text)], pattern.pattern


def test_a_secret_on_the_border_of_a_window_is_found_and_those_around_stay_apart() -> None:
    redactor = PatternRedactor()
    secret = "sk_live_0123456789abcdefABCD"
    for shift in range(-len(secret) - 1, 2):
        text = "word " * ((WINDOW + shift) // 5)
        text = (
            f"{text}{' ' * (WINDOW + shift - len(text))}{secret} and my password is hunter2hunter2. {'word ' * 20_000}"
        )
        assert [(mark.start, mark.end) for mark in redactor.marks(text)] == [
            (WINDOW + shift, WINDOW + shift + len(secret)),
            (text.index("hunter2"), text.index("hunter2") + 14),
        ]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        *((pattern, words) for pattern, _, words in contextual.BARE),
        (contextual._KEY, ("key",)),
        (re.compile(f"{contextual._STRONG}|{contextual._WEAK}", re.IGNORECASE), contextual.STEMS),
    ],
    ids=["bearer", "seed", "key", "keyword"],
)
@settings(max_examples=50)
@given(data=st.data())
def test_every_match_contains_a_word_of_its_prefilter(
    pattern: re.Pattern[str], words: tuple[str, ...], data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(pattern))
    assert pattern.search(text)
    assert any(word in contextual.folded(text) for word in words), text


@pytest.mark.parametrize("text", ["BAſIC abcdefghijKLMNOP0123456789", "BASİC abcdefghijKLMNOP0123456789", "basıc"])
def test_letters_that_pass_for_ascii_hide_no_word(text: str) -> None:
    assert "basic" in contextual.folded(text)
