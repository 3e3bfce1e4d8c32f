"""Settings of extensions."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from keepsaid.config.section import Section


class ExtensionConfig(Section):
    """One extension."""

    enabled: bool = True
    """Whether it is let in."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Its own settings, as its manifest names them; secrets are taken from the environment, never from here."""
