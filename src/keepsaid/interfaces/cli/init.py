"""`keepsaid init`: make a home, find a model that really answers, write down what was chosen."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from keepsaid.config import Config, Home
from keepsaid.errors import ConfigError, HomeError, ModelError
from keepsaid.interfaces.cli import escapes, models, program, remote
from keepsaid.interfaces.cli.config import replace_file, with_model
from keepsaid.interfaces.cli.console import say, session, show
from keepsaid.values import frozen

_AUTO, _NONE = "auto", "none"
_TEMPLATES = {
    "SOUL.md": "Answer plainly and briefly. Say so when you do not know.\n",
    "IDENTITY.md": "You are the assistant of the person who runs this program.\n",
    "USER.md": "Nothing is written here yet about the person you talk to.\n",
}


@frozen
class _Choice:
    """What came of looking: the model to save, if any, how long it took to reply, and how many gave no reply."""

    name: str | None = None
    seconds: float | None = None
    silent: int = 0


def init(
    model: Annotated[
        str | None, typer.Option(help="provider/name, or none; by default the first provider found.")
    ] = None,
    non_interactive: Annotated[bool, typer.Option("--non-interactive", help="Ask nothing.")] = False,
) -> None:
    """Set up keepsaid and choose a model that replies.

    It may be run again: the model that is set is tried first, every other setting and comment stays, and the
    config as it was is kept beside the new one. When models were tried and none replied, the config is left
    as it is and the exit code is 1.
    """
    home, config = session().home, session().config()
    home.make()
    ask = not non_interactive and sys.stdin.isatty()
    chosen = _chosen(config, model, ask=ask)
    wrote = [str(home.config_file)] if _write_model(home, chosen.name) else []
    wrote += [str(file) for file in _write_templates(home.agent(config.agent))]
    stands = chosen.name or config.models.chat
    shape = {"model": stands, "replied_in_s": chosen.seconds, "config": str(home.config_file), "home": str(home.data)}
    show({**shape, "wrote": wrote}, *(f"wrote  {file}" for file in wrote), f"made   {home.data}")
    models.offered(ask=ask)
    _advise(home, stands, chosen.silent)
    if chosen.silent and chosen.name is None:
        raise typer.Exit(program.FAILED)


def _advise(home: Home, stands: str, silent: int) -> None:
    if silent and stands != _NONE:
        say(f"No model gave a reply; models.chat stays {stands}. Fix the cause, then run keepsaid init again.")
    elif stands in (_AUTO, _NONE):
        say("No model is set: messages are stored and remembered, and answers quote memory.")
        say("To set one: export OPENAI_API_KEY or ANTHROPIC_API_KEY, or start ollama; then keepsaid init")
    if remote.running(home) is not None:
        say("A runtime is up; it takes the new settings when it is started again.")
    say("Next:  keepsaid chat")


def _chosen(config: Config, named: str | None, *, ask: bool) -> _Choice:
    """The model to save, tried; without a name, the first that replies of the one that is set and those at hand.

    Raises ModelError or ConfigError when the one that was asked for gives no reply.
    """
    if named is not None:
        return _Choice(_NONE) if named == _NONE else _Choice(named, _tried(config, named))
    names = _candidates(config)
    if ask and names:
        return _prompt_choice(config, names)
    for name in names:
        if (seconds := _replied(config, name)) is not None:
            return _Choice(name, seconds)
    return _Choice(silent=len(names))


def _candidates(config: Config) -> list[str]:
    """The model that is set, then every other at hand; each is named on stderr with how it was found."""
    from keepsaid.app.models import models_at_hand  # noqa: PLC0415

    names = {} if config.models.chat in (_AUTO, _NONE) else {config.models.chat: "models.chat names it"}
    for found in models_at_hand(config):
        names.setdefault(found.name, found.how)
    say("Looking for models" if names else "No model found: neither an API key nor OLLAMA_HOST is set.")
    for name, how in names.items():
        say(f"  {name}   {how}")
    return list(names)


def _prompt_choice(config: Config, names: list[str]) -> _Choice:
    choices = [*names, _NONE]
    while True:
        offered = "   ".join(f"{place} {name}" for place, name in enumerate(choices, start=1))
        answer = typer.prompt(f"Use for chat?  {escapes.visible(offered)}", default="1", err=True)
        if answer not in choices and not (answer.isdigit() and 1 <= int(answer) <= len(choices)):
            say(f"  {answer!r} is not a choice: type a number from 1 to {len(choices)}, or a name")
            continue
        name = answer if answer in choices else choices[int(answer) - 1]
        if name == _NONE:
            return _Choice(_NONE)
        if (seconds := _replied(config, name)) is not None:
            return _Choice(name, seconds)


def _replied(config: Config, name: str) -> float | None:
    """Seconds until the model replied; None, and why on stderr, when it did not."""
    try:
        return _tried(config, name)
    except (ModelError, ConfigError) as error:
        say(f"  {name} gave no reply: {error.what}")
        return None


def _tried(config: Config, name: str) -> float:
    from keepsaid.app.models import try_model  # noqa: PLC0415

    say(f"  testing {name} ...")
    seconds = round(asyncio.run(try_model(config, name)), 2)
    say(f"  {name} replied in {seconds:g} s")
    return seconds


def _write_model(home: Home, chosen: str | None) -> bool:
    """Write the choice, and keep the file as it was beside it; False when nothing was chosen or nothing changes."""
    file = home.config_file
    if not file.exists():
        replace_file(file, with_model("", chosen or _AUTO))
        return True
    text = file.read_bytes().decode("utf-8")
    keys = yaml.safe_load(text) or {}
    if chosen is None or (keys.get("models") or {}).get("chat", _AUTO) == chosen:
        return False
    replace_file(file.with_name(f"{file.name}.bak"), text)
    replace_file(file, with_model(text, chosen))
    return True


def _write_templates(folder: Path) -> list[Path]:
    """The identity files that are not there yet."""
    try:
        for made in (folder.parent, folder):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HomeError(f"{folder} cannot be made ({error.strerror})") from error
    missing = [folder / name for name in _TEMPLATES if not (folder / name).exists()]
    for file in missing:
        replace_file(file, _TEMPLATES[file.name])
    return missing
