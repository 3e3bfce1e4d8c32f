"""The redactor: own secrets first, then formats, cards, and what the words around give away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from keepsaid.adapters.redaction.cards import card_marks
from keepsaid.adapters.redaction.formats import token_marks
from keepsaid.adapters.redaction.masks import Masks
from keepsaid.adapters.redaction.own import OwnSecrets
from keepsaid.adapters.redaction.placed import placed_marks
from keepsaid.adapters.redaction.prefixed import prefixed_marks
from keepsaid.adapters.redaction.spoken import spoken_marks
from keepsaid.domain.redaction import Mark, masked, merged


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

    def marks(self, text: str) -> tuple[Mark, ...]:
        """The secrets in a text."""
        return merged(self._found(text))

    def redacted(self, text: str) -> str:
        """The text without them."""
        marks = self.marks(text)
        return masked(text, marks) if marks else text

    def _found(self, text: str) -> Iterator[Mark]:
        yield from self._own.marks(text)
        masks = Masks(text)
        yield from (mark for mark in self._by_table(text) if not masks.touch(mark.start, mark.end))

    def _by_table(self, text: str) -> Iterator[Mark]:
        yield from token_marks(text)
        yield from card_marks(text)
        yield from placed_marks(text)
        yield from spoken_marks(text)
        yield from prefixed_marks(text)
        for pattern in self._patterns:
            yield from (Mark(*found.span(), "pattern") for found in pattern.finditer(text) if found.group())
