"""Cards: numbers of credit cards, told from other numbers by issuer, length and check digit (ISO/IEC 7812)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keepsaid.adapters.redaction.windows import matches
from keepsaid.domain.redaction import Mark

_NUMBER = re.compile(
    r"(?<![\w.+-])(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{4}|3[47]\d{2}([ -]?)\d{6}\2\d{5})(?![\w-]|\.\d)", re.ASCII
)
_IBAN = re.compile(r"\b[A-Z]{2}\d\d(?: \d{4}){0,5} \Z")
_LOOK_BACK = 40
_ISSUED = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|62\d{14}|3[47]\d{13}"
)


def card_marks(text: str) -> Iterator[Mark]:
    """Every number that a credit card may have."""
    for found in matches(_NUMBER, text):
        digits = found.group().replace(" ", "").replace("-", "")
        if (
            _ISSUED.fullmatch(digits)
            and _checks(digits)
            and not _IBAN.search(text[max(0, found.start() - _LOOK_BACK) : found.start()])
        ):
            yield Mark(*found.span(), "card number")


def _checks(digits: str) -> bool:
    """The check digit, after Luhn."""
    doubled = [int(one) * 2 if place % 2 else int(one) for place, one in enumerate(reversed(digits))]
    return sum(one - 9 if one > 9 else one for one in doubled) % 10 == 0
