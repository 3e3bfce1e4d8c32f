"""Prefixed: tokens of makers nobody listed, told by a short beginning, a separator and a long random rest.

`abc_` or `abc-live-`, then at least 20 letters and digits of both cases, or at least 32 of hex. Hashes, ULIDs, UUIDs
and words joined by hyphens are no tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from keepsaid.adapters.redaction.randomness import is_random
from keepsaid.adapters.redaction.windows import matches
from keepsaid.domain.redaction import Mark

_TOKEN = re.compile(
    r"(?<![\w/.+%@#-])(?P<beginning>[A-Za-z][A-Za-z0-9]{1,11}(?:[_-][A-Za-z0-9]{1,8}){0,3}[_-])"
    r"(?P<rest>[A-Za-z0-9][A-Za-z0-9_-]{19,400}(?:-X)?)(?![\w/.@-]{1,2}[A-Za-z0-9])"
)
_HASHED = re.compile(
    r"(?i)(?:.*[_-])?(?:sha\d*|md5|hash|commit|rev|git|etag|uuid|guid|id|img|image|file|video|npub\w*|note\w*|build"
    r"|blob|chunk|asset|bundle|css|js|vendor|main|index|digest|cid|tx|block|version|v\d+)[_-]"
)
_HEX = re.compile(r"[0-9a-f]{32,128}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")
_LOOK_BACK = 300
_SHORT = 4
"""Characters of a beginning, with its separator, before which hex is more likely a hash."""

_DIGITS_MIN = 2
_TURNS_MIN = 6


def prefixed_marks(text: str) -> Iterator[Mark]:
    """Every token that looks made by a machine behind a short beginning."""
    if "_" not in text and "-" not in text:
        return
    for found in matches(_TOKEN, text):
        if _is_token(found["beginning"], found["rest"]) and not _in_address(text, found.start()):
            yield Mark(*found.span(), "token")


def _in_address(text: str, place: int) -> bool:
    """Whether a place is inside an address: pictures and documents have such names."""
    words = text[max(0, place - _LOOK_BACK) : place].split()
    return bool(words) and not text[place - 1].isspace() and "://" in words[-1]


def _is_token(beginning: str, rest: str) -> bool:
    if _UUID.match(rest) or rest.startswith(("-", "_")):
        return False
    if _HEX.fullmatch(rest):
        return len(beginning) > _SHORT and _HASHED.fullmatch(beginning) is None and is_random(rest, 32)
    run = max(re.split(r"[_-]", rest), key=len)
    return len(run) >= 12 and _is_mixed(rest) and _HASHED.fullmatch(beginning) is None


def _is_mixed(text: str) -> bool:
    """Whether digits and both cases alternate as they do in nothing that a person names."""
    classes = ["d" if one.isdigit() else "u" if one.isupper() else "l" for one in text if one.isalnum()]
    turns = sum(one != other for one, other in pairwise(classes))
    return len(set(classes)) == 3 and classes.count("d") >= _DIGITS_MIN and turns >= max(_TURNS_MIN, len(classes) // 4)
