"""Emoji: whether a text is one, and whether it is a thumb that points down, in any skin tone and spelling."""

from __future__ import annotations

import unicodedata
from typing import Final

_CHARS_MAX: Final = 16
"""The longest sequence of Unicode, the flag of a region, has 7 characters; a family with skin tones has 11."""

_PICTURES: Final = ("So", "Sm", "Me")
"""Categories of characters that are pictures; `Me` is that of keycaps."""

_TONES: Final = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
_LOOKS: Final = frozenset("\ufe0e\ufe0f")
_DOWN: Final = frozenset(("\U0001f44e", "-1", "thumbsdown"))


def is_emoji(text: str) -> bool:
    """Whether a text is an emoji of Unicode and nothing else; names such as `:tada:` are not."""
    if not text or len(text) > _CHARS_MAX or any(one.isalpha() or one.isspace() for one in text):
        return False
    kinds = [unicodedata.category(one) for one in text]
    return "Cc" not in kinds and any(kind in _PICTURES for kind in kinds)


def plain_emoji(text: str) -> str:
    """An emoji without the signs that choose its skin tone and its style."""
    return "".join(one for one in text if one not in _TONES and one not in _LOOKS)


def is_thumbs_down(text: str) -> bool:
    """Whether a reaction is a thumb that points down; at Slack it is `:-1:` or `:thumbsdown:`, with a skin tone or not.

    `text` is all that one person gave a message: several emoji have spaces between them.
    """
    for word in text.split():
        name = word.strip(":").partition("::")[0] if word.startswith(":") else plain_emoji(word)
        if name in _DOWN and (word.startswith(":") or not name.isascii()):
            return True
    return False
