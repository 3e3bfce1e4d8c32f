"""The redactor: the secrets of this instance in every encoding, then formats, cards, and contextual secrets."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote, quote_plus

from keepsaid.adapters.redaction.contextual import find_keyword_secrets, find_syntax_secrets
from keepsaid.adapters.redaction.decoded import Squeezed, View, fully, readings, squeezed
from keepsaid.adapters.redaction.formats import Masks, card_marks, prefixed_marks, token_marks
from keepsaid.domain.redaction import SecretMark, masked, merged
from keepsaid.text.normal import normalise

KIND = "own secret"
CHARS_MIN = 6
"""A shorter secret is part of too many words to be looked for."""

_WORD_CHARS_MAX = 7
"""Up to here a secret must stand by itself, not within a word."""

_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")


class OwnSecrets:
    """Finds given secrets: plain, URL-encoded, JSON- and HTML-escaped, base64 at any offset, hex, wrapped or not."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {normalise(secret).strip() for secret in secrets}
        long_enough = sorted({one for one in known if len(one) >= CHARS_MIN}, key=len, reverse=True)
        words = dict.fromkeys(one for secret in long_enough for one in (secret, fully(View(secret)).text))
        self._plain = tuple(words)
        self._runs = tuple(dict.fromkeys(run for secret in long_enough for run in _runs(secret)))

    def marks(self, text: str) -> Iterator[SecretMark]:
        """Every place where one of them stands; they may overlap."""
        if not self._plain:
            return
        for view in readings(text):
            yield from self._words(view)
            yield from self._blocks(squeezed(view))

    def _words(self, view: View) -> Iterator[SecretMark]:
        for secret in self._plain:
            for start in _places(view.text, secret):
                end = start + len(secret)
                is_within_word = view.text[start - 1 : start].isalnum() or view.text[end : end + 1].isalnum()
                if len(secret) > _WORD_CHARS_MAX or not is_within_word:
                    yield SecretMark(*view.span(start, end), KIND)

    def _blocks(self, view: View | Squeezed) -> Iterator[SecretMark]:
        for run in self._runs:
            for start in _places(view.text, run):
                end = start + len(run)
                before, after = view.text[start - 1 : start], view.text[end : end + 1]
                yield SecretMark(*view.span(start - (before in _BASE64), end + (after in _BASE64)), KIND)
        for secret in self._plain:
            if len(secret) > _WORD_CHARS_MAX and secret == "".join(secret.split()):
                for start in _places(view.text, secret):
                    yield SecretMark(*view.span(start, start + len(secret)), KIND)


def _places(text: str, wanted: str) -> Iterator[int]:
    start = text.find(wanted)
    while start >= 0:
        yield start
        start = text.find(wanted, start + len(wanted))


def _runs(secret: str) -> Iterator[str]:
    """The secret in hex and base64, with what of base64 does not depend on what stands before and after it."""
    written = {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
    forms = [form.encode() for form in sorted(written)]
    for raw in (*forms, secret.encode("utf-16-le")):
        yield from (raw.hex(), raw.hex().upper())
        for core in (_core(raw, offset) for offset in range(3)):
            yield from (core, core.replace("+", "-").replace("/", "_"))


def _core(raw: bytes, offset: int) -> str:
    whole = b64encode(b"\0" * offset + raw).decode()
    first = -(-offset * 8 // 6)
    last = (offset + len(raw)) * 8 // 6
    return whole[first:last]


class PatternRedactor:
    """Finds secrets by the table, by given patterns, and the given secrets in every encoding."""

    def __init__(self, secrets: Iterable[str] = (), patterns: Sequence[re.Pattern[str]] = ()) -> None:
        self._secrets = tuple(secrets)
        self._own = OwnSecrets(self._secrets)
        self._patterns = tuple(patterns)

    def learn(self, secret: str) -> None:
        """Know one more secret, such as a token made when the program started."""
        self._secrets = (*self._secrets, secret)
        self._own = OwnSecrets(self._secrets)

    def marks(self, text: str) -> tuple[SecretMark, ...]:
        return merged(self._found(text))

    def redacted(self, text: str) -> str:
        marks = self.marks(text)
        return masked(text, marks) if marks else text

    def _found(self, text: str) -> Iterator[SecretMark]:
        yield from self._own.marks(text)
        masks = Masks(text)
        yield from (mark for mark in self._by_table(text) if not masks.touch(mark.start, mark.end))

    def _by_table(self, text: str) -> Iterator[SecretMark]:
        yield from token_marks(text)
        yield from card_marks(text)
        yield from find_syntax_secrets(text)
        yield from find_keyword_secrets(text)
        yield from prefixed_marks(text)
        for pattern in self._patterns:
            yield from (SecretMark(*found.span(), "pattern") for found in pattern.finditer(text) if found.group())
