"""Rules to try: those of the config, or those of another file in its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keepsaid.errors import ConfigError
from keepsaid.interfaces.cli.session import session

if TYPE_CHECKING:
    from keepsaid.config import Config

RulesFile = Annotated[
    Path | None,
    typer.Option("--rules", help="A config file, or one with `routes` alone, whose rules are tried instead."),
]

_SECTIONS = ("routes", "channels")


def config_with(rules: Path | None) -> Config:
    """The settings, with `routes` (and `channels`, if it names them) from another file.

    Raises ConfigError naming that file when it cannot be read or a rule in it is wrong.
    """
    if rules is None:
        return session().config()
    from keepsaid.config import load  # noqa: PLC0415 - the tree of settings costs 0.1 s, which `--help` saves
    from keepsaid.config.file import read  # noqa: PLC0415

    if not rules.is_file():
        raise ConfigError(f"there is no file {rules}", hint="keepsaid config path")
    given = {name: section for name, section in read(rules).items() if name in _SECTIONS}
    if "routes" not in given:
        raise ConfigError(f"{rules} has no routes", hint="routes: {rules: [{name: ..., match: {...}, action: drop}]}")
    try:
        config, _ = load(session().home.config_file, given)
    except ConfigError as error:
        error.what = error.what.replace("settings: ", f"{rules}: ", 1)
        raise
    return config
