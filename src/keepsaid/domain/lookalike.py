"""Look-alikes: how a line begins for whoever reads it, however its letters are written."""

from __future__ import annotations

import unicodedata

_BRACKETS = str.maketrans(dict.fromkeys("\u3010\u3014\u3016\u3018\u301a\u2045\u2772\u27e6\u2985\u298b\uff3b", "["))
_OPENERS = frozenset("[\u3010\u3014\u3016\u3018\u301a\u2045\u2772\u27e6\u2985\u298b\uff3b\ufe47")
_PREFIXES = " >*_#~`-+|\"'"
_HEAD_CHARS = 120


def opens(text: str) -> bool:
    """Whether a text contains anything that looks like an opening bracket."""
    return not _OPENERS.isdisjoint(text)


def heading(line: str) -> str:
    """The beginning of a line as it looks: without format characters, quoting and emphasis, in plain small letters.

    Every character is looked at once, and normalised alone, so that no text takes longer than its length.
    """
    seen: list[str] = []
    for letter in line:
        if unicodedata.category(letter) == "Cf":
            continue
        for one in unicodedata.normalize("NFKC", letter.translate(_BRACKETS)):
            if seen or (one not in _PREFIXES and not one.isspace()):
                seen.append(one)
        if len(seen) >= _HEAD_CHARS:
            break
    return " ".join("".join(seen).split()).replace("[ ", "[").casefold()
