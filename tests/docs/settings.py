"""Settings of the documentation: whether the program would take them as they are written."""

from __future__ import annotations

import re
from pathlib import Path

from keepsaid.app.models import model_named
from keepsaid.config import load
from keepsaid.errors import ConfigError

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_FIELDS = ("channel", "account", "sender", "conversation", "event", "trust", "text")


_FORMS = {
    "TELEGRAM_TOKEN": "123456789:the-token-of-a-bot",
    "SLACK_BOT_TOKEN": "xoxb-the-token-of-a-bot",
    "NOSTR_SECRET_KEY": "0" * 63 + "1",
}
"""Values of variables that have a form."""


def variables(text: str) -> dict[str, str]:
    """A value for every variable that the settings name."""
    return {name: _FORMS.get(name, f"the {name.lower()}") for name in _VARIABLE.findall(text)}


def fault_of(file: Path) -> str:
    """What is wrong with a config file: refused, warned about, or a rule that could never match."""
    try:
        config, warnings = load(file)
        model_named(config)
    except ConfigError as error:
        return error.what
    reading = (
        f"rule {rule.name} reads {field!r}, which no message has"
        for rule in config.table().rules
        for field in rule.match
        if field not in _FIELDS and not field.startswith("payload.")
    )
    return "\n".join([*warnings, *reading])
