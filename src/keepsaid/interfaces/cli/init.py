"""`keepsaid init`: make a home, find a model that really answers, write down what was chosen."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from keepsaid.errors import ConfigError, HomeError, ModelError
from keepsaid.interfaces.cli.output import say, show
from keepsaid.interfaces.cli.remote import running
from keepsaid.interfaces.cli.session import session

if TYPE_CHECKING:
    from keepsaid.config import Config, Home

_NONE = "none"
_TEMPLATES = {
    "SOUL.md": "Answer plainly and briefly. Say so when you do not know.\n",
    "IDENTITY.md": "You are the assistant of the person who runs this program.\n",
    "USER.md": "Nothing is written here yet about the person you talk to.\n",
}


def init(
    model: Annotated[str | None, typer.Option(help="provider/name, or none; by default what is found.")] = None,
    non_interactive: Annotated[bool, typer.Option("--non-interactive", help="Ask nothing.")] = False,
) -> None:
    """Make the home and choose a model that really replies.

    It may be run again: other settings stay, and the config as it was is kept beside the new one.
    """
    home = session().home
    config = session().config()
    home.make()
    chosen, seconds = _chosen(config, model, ask=not non_interactive and sys.stdin.isatty())
    wrote = _write_model(home, chosen)
    templates = _write_templates(home.agent(config.agent))
    shape = {
        "model": chosen or "auto",
        "replied_in_s": seconds,
        "config": str(home.config_file),
        "home": str(home.data),
    }
    lines = [f"wrote  {home.config_file}"] if wrote else []
    lines += [f"wrote  {file}" for file in templates]
    lines.append(f"made   {home.data}")
    show({**shape, "wrote": [str(home.config_file)] * wrote + [str(file) for file in templates]}, *lines)
    if chosen in (None, _NONE):
        say("No model is set: messages are stored and remembered, and answers quote memory.")
        say("To set one: export OPENAI_API_KEY or ANTHROPIC_API_KEY, or start ollama; then keepsaid init")
    if running(home) is not None:
        say("A runtime is up; it takes the new settings when it is started again.")
    say("Next:  keepsaid chat")


def _chosen(config: Config, named: str | None, *, ask: bool) -> tuple[str | None, float | None]:
    """The model to save and how long it took to reply; None leaves the setting as it is.

    Raises ModelError or ConfigError when the one that was asked for gives no reply.
    """
    from keepsaid.app.models import models_at_hand  # noqa: PLC0415

    if named is not None:
        return (_NONE, None) if named == _NONE else (named, _tried(config, named))
    at_hand = models_at_hand(config)
    say("Looking for models" if at_hand else "No model is at hand: no API key is set, and OLLAMA_HOST is not.")
    for found in at_hand:
        say(f"  {found.name}   {found.how}")
    names = [found.name for found in at_hand]
    if ask and names:
        return _asked(config, names)
    for name in names:
        try:
            return name, _tried(config, name)
        except (ModelError, ConfigError) as error:
            say(f"  {name} gave no reply: {error.what}")
    return (_NONE, None) if names else (None, None)


def _asked(config: Config, names: list[str]) -> tuple[str | None, float | None]:
    choices = [*names, _NONE]
    while True:
        offered = "   ".join(f"{place} {name}" for place, name in enumerate(choices, start=1))
        answer = typer.prompt(f"Use for chat?  {offered}", default="1", err=True)
        if answer not in choices and not (answer.isdigit() and 1 <= int(answer) <= len(choices)):
            say(f"  {answer!r} is none of them")
            continue
        name = answer if answer in choices else choices[int(answer) - 1]
        if name == _NONE:
            return _NONE, None
        try:
            return name, _tried(config, name)
        except (ModelError, ConfigError) as error:
            say(f"  {name} gave no reply: {error.what}")


def _tried(config: Config, name: str) -> float:
    from keepsaid.app.models import try_model  # noqa: PLC0415

    say(f"  testing {name} ...")
    seconds = round(asyncio.run(try_model(config, name)), 2)
    say(f"  {name} replied in {seconds:g} s")
    return seconds


def _write_model(home: Home, chosen: str | None) -> bool:
    """Write the choice; other keys stay, and the file as it was is kept beside it. False when nothing changes."""
    file = home.config_file
    keys: dict[str, Any] = {}
    if file.exists():
        loaded = yaml.safe_load(file.read_text("utf-8"))
        keys = loaded if isinstance(loaded, dict) else {}
    models = keys.get("models") or {}
    if not isinstance(models, dict):
        raise ConfigError(f"{file}: models must hold keys and values")
    if models.get("chat", "auto") == (chosen or "auto") and file.exists():
        return False
    keys["models"] = {**models, "chat": chosen or "auto"}
    if file.exists():
        _replace(file.with_name(f"{file.name}.bak"), file.read_text("utf-8"))
    _replace(file, yaml.safe_dump(keys, sort_keys=False, allow_unicode=True))
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
        _replace(file, _TEMPLATES[file.name])
    return missing


def _replace(file: Path, text: str) -> None:
    partial = file.with_name(f"{file.name}.partial")
    try:
        partial.touch(mode=0o600)
        partial.write_text(text, "utf-8")
        partial.replace(file)
    except OSError as error:
        raise HomeError(f"{file} cannot be written ({error.strerror})", safe="The file was not changed.") from error
