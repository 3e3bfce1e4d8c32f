"""The model line: `models.chat` in the text of a config file, all else of which stays as it was written."""

from __future__ import annotations

import json
import re

from keepsaid.interfaces.cli.setting_line import with_setting

_PLAIN = re.compile(r"[A-Za-z][\w./@-]*(?::[\w./@-]+)*")
"""Names that YAML reads as text without quotes."""


def with_model(text: str, name: str) -> str:
    """The text with `models.chat` set to `name`; comments, order and every other key stay.

    Raises ConfigError when `models` holds no keys.
    """
    return with_setting(text, ("models", "chat"), name, name if _PLAIN.fullmatch(name) else json.dumps(name))
