"""Normalised text: stored, hashed and compared; text shown without passwords or look-alikes; amounts in words."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from keepsaid.text.patterns import lazy

_NAME_CHARS_MAX = 120
_PLAIN_CHARS_MAX = 60
_ROUND = str.maketrans("[]", "()")
_KINDS = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
_ESCAPED = lazy(r"\\u(?:[dD][89a-fA-F]|0000)")
_UNSTORABLE = lazy("[\0\ud800-\udfff]")
_REPLACEMENT = "\ufffd"

_MARKS_MAX = 30
_JOINER = "\u034f"
_MARKS = lazy(
    r"[^\w\x00-\u02ff\u2000-\u20cf\u2100-\u2cee\u3000-\u3029\u3030-\u3098\ufe00-\ufe1f\uff00-\uffff\U0001f000-\U0010ffff]{14,}"
)
"""A run that may hold more than 30 combining marks: one character decodes to two marks at most, and the letter
before it may bring three. The characters left out here, such as letters, punctuation and emoji, are not marks."""

_SLICE_CHARS = 16_384
_SLICE_END = lazy(r"(?=[\x00-\u02ff\u034f\u2000-\u20cf\U0001f000-\U0001faff]|[^\W\u1160-\u11ff])")
"""Where a text can be cut so that its parts, normalised, are the whole, normalised: before what never composes with
the character before it. Those are letters other than Hangul vowels and finals, digits, most punctuation and emoji."""


def normalise(text: str) -> str:
    """Searchable text: NFC, with NUL and lone surrogates replaced by U+FFFD (PostgreSQL and UTF-8 refuse them).

    Runs of more than 30 combining marks are divided by U+034F, as the Stream-Safe Text Format has it (UAX 15, D4), so
    that the time is linear. A long text is normalised in slices, so that no single call holds the interpreter for long.
    """
    if text.isascii():
        return text.replace("\0", _REPLACEMENT)
    bounded = (_MARKS.sub(_stream_safe, _UNSTORABLE.sub(_REPLACEMENT, part)) for part in _slices(text))
    return "".join(unicodedata.normalize("NFC", slice_) for part in bounded for slice_ in _slices(part))


def normalise_json(text: str) -> str:
    """A JSON text, normalised with its escapes decoded; one that is not JSON is normalised as it is."""
    plain = normalise(text)
    if not _ESCAPED.search(plain):
        return plain
    try:
        return json.dumps(_whole(json.loads(plain)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return plain


def _whole(value: object) -> object:
    if isinstance(value, str):
        return normalise(value)
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {normalise(name): _whole(one) for name, one in value.items()}
    return value


def is_storable(text: str) -> bool:
    """Whether a text holds neither NUL nor a lone surrogate, which no UTF-8 can be made of."""
    return (text.isascii() and "\0" not in text) or not _UNSTORABLE.search(text)


def _slices(text: str) -> Iterator[str]:
    """The text in parts of 16,384 characters, or as soon after that as it can be cut."""
    at = 0
    while len(text) - at > _SLICE_CHARS:
        found = _SLICE_END.search(text, at + _SLICE_CHARS)
        end = found.start() if found else len(text)
        yield text[at:end]
        at = end
    yield text[at:]


def _stream_safe(found: re.Match[str]) -> str:
    """The run with U+034F wherever more than 30 combining marks would follow one another."""
    start = found.start()
    count = _marks_of(found.string[start - 1])[1] if start else 0
    made: list[str] = []
    for letter in found[0]:
        size, ends = _marks_of(letter)
        if size and count + size > _MARKS_MAX:
            made.append(_JOINER)
            count = 0
        count = count + size if size else ends
        made.append(letter)
    return "".join(made)


@lru_cache(1_024)
def _marks_of(letter: str) -> tuple[int, int]:
    """Of how many combining marks a character consists, if of nothing else; and how many it ends with."""
    marks = [unicodedata.combining(one) > 0 for one in unicodedata.normalize("NFD", letter)]
    ends = next((n for n, is_mark in enumerate(reversed(marks)) if not is_mark), len(marks))
    return len(marks) if all(marks) else 0, ends


def kind_of(value: object) -> str:
    """What a value read from JSON is, in words that its sender knows."""
    return _KINDS.get(type(value), "null")


def digest(*parts: str | bytes | None) -> bytes:
    """A 16-byte hash of the parts; parts cannot run into one another, and None differs from an empty part."""
    raws = (part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part for part in parts)
    fields = [b"n" if raw is None else b"%d:%b" % (len(raw), raw) for raw in raws]
    return blake2b(b"".join(fields), digest_size=16).digest()


def joined(separator: str, *parts: str) -> str:
    """The parts as one name, which no other parts give: `%` and the separator are escaped in all but the last."""
    code = f"%{ord(separator):02X}"
    escaped = [part.replace("%", "%25").replace(separator, code) for part in parts[:-1]]
    return separator.join([*escaped, *parts[-1:]])


def parted(separator: str, name: str, count: int) -> tuple[str, ...]:
    """The `count` parts that `joined` made a name of; fewer when it was made of fewer."""
    code = f"%{ord(separator):02X}"
    *escaped, last = name.split(separator, count - 1)
    return (*(part.replace(code, separator).replace("%25", "%") for part in escaped), last)


def named_short(name: str) -> str:
    """A name from outside as it stands inside a label of ours: short, on one line, and unable to end it."""
    return cut(" ".join(name.translate(_ROUND).split()), _NAME_CHARS_MAX)


def plain_name(name: str) -> str:
    """A name from outside as it may stand among words of the program: letters, digits and ` ._-@'` alone, and short."""
    fit = (letter.isalnum() or letter in "._-@'" or unicodedata.category(letter)[0] == "M" for letter in name)
    plain = "".join(letter if is_fit else " " for letter, is_fit in zip(name, fit, strict=True))
    return cut(" ".join(plain.split()), _PLAIN_CHARS_MAX)


def ends_of(text: str, limit: int) -> str:
    """The beginning and the end of a text, at most `limit` characters; the whole of a text that is no longer."""
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[:half]}\n{text[len(text) - half :]}" if half else text[:limit]


def cut(text: str, limit: int) -> str:
    """The text, at most `limit` characters, with a mark where it was cut."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


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


_PASSWORD = lazy(r"(?P<before>://[^\s/?#:@]{0,200}:)[^\s/?#]{1,400}@")
_LOGIN = lazy(r"(?<=://)[^\s/?#]{1,600}@")


_PLAIN_URL = lazy(r"[a-z]{1,20}://(?:[^\s/?#@]{0,600}@)?[^\s/?#@]{0,600}(?:/[^\s?#@]{0,600})?(?:\?[^\s?#@]{0,2000})?")
_BAD_ESCAPE = lazy(r"%(?![0-9A-Fa-f]{2})")


def is_plain_url(text: str) -> bool:
    """Whether it is clear where the user name and password of a URL end: they have no @ / ? # or lone % in them."""
    return _PLAIN_URL.fullmatch(text) is not None and _BAD_ESCAPE.search(text) is None


def without_logins(text: str) -> str:
    """The text without the user name and password of every URL in it: `https://example.org`."""
    return _LOGIN.sub("", text)


def without_passwords(text: str) -> str:
    """The text with `**********` for the password of every URL in it: `https://bob:**********@example.org`."""
    return _PASSWORD.sub(r"\g<before>**********@", text)


def masked_addresses(value: Any) -> Any:
    """A JSON value with the password of every URL masked, however deep it stands."""
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, dict):
        return {name: masked_addresses(inner) for name, inner in value.items()}
    return [masked_addresses(inner) for inner in value] if isinstance(value, list | tuple) else value


def duration(ms: float | None) -> str:
    """A span of time for people: `80 ms`, `4.2 s`, `3 m 20 s`, `2 h 5 m`, `3 d 4 h`."""
    if ms is None:
        return "-"
    if ms < 1_000:
        return f"{max(0, ms):.0f} ms"
    if (seconds := ms / 1_000) < 60:
        return f"{seconds:.1f} s"
    minutes, hours = int(seconds // 60), int(seconds // 3_600)
    if hours < 1:
        return f"{minutes} m {int(seconds % 60)} s"
    return f"{hours} h {minutes % 60} m" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def span_in(text: str) -> int | None:
    """The milliseconds that a text such as `2w`, `30d`, `12h`, `45m` or `90s` means; None for any other text."""
    written = text.strip()
    number, unit = written[:-1].rstrip(" "), _UNITS_MS.get(written[-1:])
    is_count = number.isascii() and number.isdecimal() and len(number) < _COUNT_DIGITS_MAX
    return int(number) * unit if unit is not None and is_count else None


_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_COUNT_DIGITS_MAX = 8


def span_text(ms: int) -> str:
    """An interval as `span_in` reads it, in the largest unit up to days that it is a multiple of: `1d`, `90s`."""
    unit, size = next(
        ((unit, size) for unit, size in reversed(_UNITS_MS.items()) if unit != "w" and ms % size == 0), ("s", 1_000)
    )
    return f"{ms // size}{unit}" if ms % size == 0 else f"{ms / size}{unit}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 message`, `2,041 messages`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def tallied(counts: Mapping[str, int], order: Sequence[str] = ()) -> str:
    """Counts by name: those named first even when they are none, then every other."""
    names = [*order, *sorted(set(counts) - set(order))]
    return "   ".join(f"{name} {counts.get(name, 0):,}" for name in names) or "none"
