"""Addresses: text that may hold URLs, without the passwords in them."""

from __future__ import annotations

import re
from typing import Any

_PASSWORD = re.compile(r"(?P<before>://[^\s/?#:@]{0,200}:)[^\s/?#]{1,400}@")

_LOGIN = re.compile(r"(?<=://)[^\s/?#]{1,600}@")


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
