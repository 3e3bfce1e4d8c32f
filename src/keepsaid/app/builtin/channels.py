"""The built-in channels, as the config has them."""

from __future__ import annotations

from collections.abc import Mapping

from keepsaid.app.builtin.parts import BuiltInContext
from keepsaid.app.channels import channels_of
from keepsaid.config import Config
from keepsaid.ports.channel import Channel, Hook

_OWN = frozenset({"terminal", "github"})
"""Channels with an extension of their own; `http` brings the others."""


class _FromConfig:
    """Channels that the config names."""

    async def initialize(self, context: BuiltInContext) -> None:
        """Make those that are this extension's."""
        elsewhere = context.parts.elsewhere
        config = context.parts.config
        self._channels, self._hooks = channels_of(config, self.names(config) - elsewhere)

    def names(self, config: Config) -> frozenset[str]:
        """Which are this extension's."""
        raise NotImplementedError

    def channels(self) -> Mapping[str, Channel]:
        """The channels by name."""
        return self._channels


class Terminal(_FromConfig):
    """The chat in a terminal."""

    def names(self, config: Config) -> frozenset[str]:  # noqa: ARG002 - the others look
        """Its own."""
        return frozenset({"terminal"})


class Http(_FromConfig):
    """What comes in over HTTP and by the library, and channels of one's own."""

    def names(self, config: Config) -> frozenset[str]:
        """All that are no other's."""
        return frozenset(config.channels) - _OWN


class GitHub(_FromConfig):
    """GitHub's webhooks."""

    def names(self, config: Config) -> frozenset[str]:  # noqa: ARG002 - the others look
        """Its own."""
        return frozenset({"github"})

    def hooks(self) -> Mapping[str, Hook]:
        """The webhook."""
        return self._hooks
