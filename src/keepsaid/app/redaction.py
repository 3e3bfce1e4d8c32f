"""The redactor of a config: its table, and every secret this process was given."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

from keepsaid.adapters.models.choose import keys_in
from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.config import Config
from keepsaid.ports.runtime import Redactor


def redactor_of(config: Config, more: Sequence[str] = ()) -> PatternRedactor:
    """A redactor that knows the config's secrets, the keys that models read, `more` secrets, and the patterns."""
    patterns = [re.compile(pattern) for pattern in config.redaction.patterns]
    return PatternRedactor((*_secrets(config), *keys_in(os.environ), *_in_addresses(config), *more), patterns)


def plain_redactor() -> Redactor:
    """A redactor for where no config can be read: it knows the table alone."""
    return PatternRedactor()


def _secrets(value: object) -> Iterator[str]:
    """Every secret in a tree of settings."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets(getattr(value, name))
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _secrets(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _secrets(inner)


def _in_addresses(config: Config) -> Iterator[str]:
    """The passwords in the addresses of models."""
    proxies = (one.base_url for one in config.openai.proxies.values())
    for address in (config.models.base_url, config.memory.embedder_url, *proxies):
        try:
            password = urlsplit(address or "").password
        except ValueError:
            continue
        if password:
            yield unquote(password)
