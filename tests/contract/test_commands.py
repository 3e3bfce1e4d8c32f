"""Both operational stores keep the contract of commands in a chat."""

from __future__ import annotations

from keepsaid_testkit.contracts.commands import CommandContract
from keepsaid_testkit.contracts.modes import IncognitoContract, PauseContract


class TestCommand(CommandContract):
    """See the contract."""


class TestPause(PauseContract):
    pass


class TestIncognito(IncognitoContract):
    pass
