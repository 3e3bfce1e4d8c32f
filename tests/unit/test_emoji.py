"""Emoji: a text is one or is not, and a thumb that points down is found in every skin tone and spelling."""

from __future__ import annotations

import pytest

from keepsaid.text.emoji import is_emoji, is_thumbs_down, plain_emoji


@pytest.mark.parametrize(
    "text",
    ["👍", "❤️", "❤", "👩🏽‍💻", "🇩🇪", "1️⃣", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "↔️", "™"],
)
def test_an_emoji_is_one(text: str) -> None:
    assert is_emoji(text)


@pytest.mark.parametrize(
    "text", ["", " ", "yes", ":tada:", "👍 👍", "👍\n", "ok👍", "...", "é", "👍" * 17, "\ufe0f", "👍\0"]
)
def test_other_texts_are_none(text: str) -> None:
    assert not is_emoji(text)


def test_the_plain_form_has_no_skin_tone_and_no_style() -> None:
    assert (plain_emoji("👍🏽"), plain_emoji("❤️"), plain_emoji("👍")) == ("👍", "❤", "👍")


@pytest.mark.parametrize("text", ["👎", "👎🏿", "👎\ufe0f", "🎉 👎", ":-1:", ":thumbsdown:", ":-1::skin-tone-3:"])
def test_a_thumb_that_points_down_is_found(text: str) -> None:
    assert is_thumbs_down(text)


@pytest.mark.parametrize("text", ["", "👍", "-1", ":+1:", ":x:", "thumbsdown", "no 👍", ":not-1:", "👎x"])
def test_nothing_else_is_a_thumb_that_points_down(text: str) -> None:
    assert not is_thumbs_down(text)
