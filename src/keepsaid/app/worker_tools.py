"""Tools of workers that settings bring, and a check of the tools that rules list."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches

from keepsaid.app.channels import github_api_of
from keepsaid.app.serving import Prepared
from keepsaid.config import Config
from keepsaid.domain.message import Lane
from keepsaid.errors import ConfigError
from keepsaid.pipeline.turn.worker import SET_STATUS
from keepsaid.ports.model import Tool
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.tools")
_OF_SERVER = "__"
_GITHUB_DIFF = "github_diff"
_NEEDS = {_GITHUB_DIFF: "; it needs github.token", "http_get": "; it needs tools.http_hosts"}


def configured_tools(config: Config) -> tuple[Tool, ...]:
    """The tools that workers have by the settings."""
    if not config.tools.http_hosts:
        return ()
    from keepsaid.adapters.tools.http_get import http_get  # noqa: PLC0415 - it costs a start 60 ms

    return (http_get(config.tools),)


def tools_of_place(config: Config, lane: Lane | None) -> tuple[Tool, ...]:
    """The tools of a task by the conversation it came from: that of a pull request has its diff."""
    if config.github.token is None or lane is None or lane.channel != "github":
        return ()
    from keepsaid.adapters.channels.github_pulls import github_diff  # noqa: PLC0415 - it costs a start 60 ms

    return (github_diff(github_api_of(config), lane.conversation),)


def tool_names_of_places(config: Config) -> frozenset[str]:
    """The names of the tools that some conversation has."""
    return frozenset() if config.github.token is None else frozenset({_GITHUB_DIFF})


def replies_in_vain(config: Config) -> Iterator[str]:
    """What is wrong with rules that reply at GitHub: without a token nothing can be sent there."""
    for rule in config.routes.rules:
        if rule.reply and rule.match.get("channel") == "github" and config.github.token is None:
            yield f"the rule {rule.name!r} replies at GitHub, which needs github.token"


def unknown_tools(config: Config, known: Collection[str]) -> Iterator[str]:
    """What is wrong with the tools of each rule: the first name that no worker has.

    The tools of an MCP server that the config names count as known: the server may start later.
    """
    for rule in config.routes.rules:
        for name in rule.tools or ():
            server, split, _ = name.partition(_OF_SERVER)
            if name in known or name == SET_STATUS or (split and server in config.tools.mcp):
                continue
            near = get_close_matches(name, known, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            meant = _NEEDS.get(name, meant)
            yield f"the rule {rule.name!r} lists the tool {name!r}, which no worker can have{meant}"
            break


@frozen
class RuleTools:
    """Refuses settings whose rules list unknown tools, or reply where nothing can be sent.

    While an extension that should be there is not active (`complete` returns false), its tools are unknown: then the
    log names what is missing, and tasks of such a rule fail with the name.
    """

    known: Callable[[], Collection[str]]
    complete: Callable[[], bool]
    keys: tuple[str, ...] = ()

    def check(self, config: Config) -> None:
        """Raise ConfigError for the first rule that lists an unknown tool, or replies where nothing can be sent."""
        for wrong in replies_in_vain(config):
            raise ConfigError(wrong)
        for wrong in unknown_tools(config, self.known()):
            if self.complete():
                raise ConfigError(wrong)
            _log.error("%s; an extension is not active", wrong)

    async def prepare(self, config: Config) -> Prepared:
        """Check the rules of new settings; raises ConfigError."""
        self.check(config)

        async def apply() -> None:
            """Do nothing: the routing table is applied by its own part."""

        return Prepared(apply)
