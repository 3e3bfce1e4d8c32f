"""How mails are parsed (short: the parser of headers takes 0.5 MB, so this is imported with the first mail)."""

from __future__ import annotations

from email.policy import EmailPolicy
from typing import Any, Final

_PARSED_CHARS_MAX = 4_000
"""A longer header is parsed up to here: the parser takes quadratic time."""


class BoundedPolicy(EmailPolicy):
    """The default policy of `email`, but of each header only the first 4,000 characters are parsed."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """The parsed header."""
        return super().header_fetch_parse(name, value[:_PARSED_CHARS_MAX])


BOUNDED: Final = BoundedPolicy()
AS_IT_CAME: Final = BoundedPolicy(refold_source="none")
"""Writes the headers of a mail as they were read."""
