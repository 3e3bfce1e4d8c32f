"""The built-in channels, as the config has them."""

from __future__ import annotations

from collections.abc import Mapping

from keepsaid.app.builtin.parts import BuiltInContext
from keepsaid.app.channels import channels_of
from keepsaid.ports.channel import Channel, Hook

_OWN = frozenset({"terminal", "github"})
"""Channels with an extension of their own; `http` brings the others."""


class _FromConfig:
    """Channels that the config names."""

    names: frozenset[str] | None = None
    """Those of this extension; None for all that are of no other."""

    async def initialize(self, context: BuiltInContext) -> None:
        """Make the channels of this extension."""
        config = context.parts.config
        names = frozenset(config.channels) - _OWN if self.names is None else self.names
        self._channels, self._hooks = channels_of(config, names - context.parts.elsewhere)

    def channels(self) -> Mapping[str, Channel]:
        """The channels by name."""
        return self._channels


class Terminal(_FromConfig):
    """The chat in a terminal."""

    names = frozenset({"terminal"})


class Http(_FromConfig):
    """Messages over HTTP and by the library, and channels of one's own."""


class GitHub(_FromConfig):
    """GitHub's webhooks."""

    names = frozenset({"github"})

    def hooks(self) -> Mapping[str, Hook]:
        """The webhook."""
        return self._hooks
