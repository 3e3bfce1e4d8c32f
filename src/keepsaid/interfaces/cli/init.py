"""`keepsaid init`: makes the home, finds a model that replies, and saves its settings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from keepsaid.config import Home
from keepsaid.domain.turn import NO_MODEL
from keepsaid.errors import HomeError
from keepsaid.interfaces.cli import channel_accounts, models, program, remote
from keepsaid.interfaces.cli.config import replace_file
from keepsaid.interfaces.cli.console import say, session, show

_AUTO = "auto"
_TEMPLATES = {
    "SOUL.md": "Answer plainly and briefly. Say so when you do not know.\n",
    "IDENTITY.md": "You are the assistant of the person who runs this program.\n",
    "USER.md": "Nothing is written here yet about the person you talk to.\n",
}


def init(
    model: Annotated[
        str | None, typer.Option(metavar="PROVIDER/NAME", help="Use this model; none uses no model.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of an OpenAI-compatible server, up to /v1.")
    ] = None,
    key_env: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="Read the API key from this variable, now and later.")
    ] = None,
    key_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Read the API key from this file, now and later; - keeps one from stdin."),
    ] = None,
    non_interactive: Annotated[bool, typer.Option("--non-interactive", help="Ask nothing.")] = False,
) -> None:
    """Set up keepsaid and choose a model that replies.

    On a terminal it lists the models that it finds, and asks; elsewhere it takes the first that replies. Local
    model servers are asked at their usual ports on 127.0.0.1.

    It tests the settings before it writes them, and again from the written file; if that fails, the former
    file is put back. It may be run again: other settings and comments stay, and the former file is kept as
    config.yaml.bak. If no model that it tried replies, the config stays, and the exit code is 1.

    Example: keepsaid init --base-url http://127.0.0.1:1234/v1
    """
    from keepsaid.interfaces.cli import choosing, saving  # noqa: PLC0415 - `--help` needs none of it

    named = choosing.InitOptions(model, base_url, key_env, key_file)
    named.check()
    home, config = session().home, session().config()
    is_new = not home.data.exists()
    home.make()
    ask = not non_interactive and sys.stdin.isatty()
    found, chosen = choosing.choose(home, config, named, ask=ask)
    saved = saving.save(home.config_file, found, chosen.choice)
    wrote = [str(file) for file in (*saved, *_write_templates(home.agent(config.agent)))]
    stands = chosen.choice.chat if chosen.choice else config.models.chat
    shape = {"model": stands, "replied_in_s": chosen.seconds, "config": str(home.config_file), "home": str(home.data)}
    needed = chosen.choice.environment if chosen.choice else []
    show(
        {**shape, "environment": needed, "wrote": wrote},
        *(f"wrote  {file}" for file in wrote),
        f"{'made  ' if is_new else 'data  '} {home.data}",
    )
    models.offered(ask=ask and model is None and base_url is None)
    channel_accounts.offered(ask=ask and model is None and base_url is None)
    if needed:
        say(f"{' and '.join(needed)} must be set in the environment of keepsaid; the config does not contain it.")
    _advise(home, stands, chosen.failed if chosen.choice is None else 0)
    if chosen.failed and chosen.choice is None:
        raise typer.Exit(program.FAILED)


def _advise(home: Home, stands: str, failed: int) -> None:
    if failed and stands != NO_MODEL:
        say(f"No model gave a reply; models.chat stays {stands}. Fix the cause, then run keepsaid init again.")
    elif stands in (_AUTO, NO_MODEL):
        say("No model is set: messages are stored and remembered, and answers quote memory.")
        say("To set one: keepsaid init on a terminal, or keepsaid init --base-url URL, or with OPENAI_API_KEY set.")
    if remote.running(home) is not None:
        say("A runtime is up; it takes the new settings when it is started again.")
    say("Next:  keepsaid chat")


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
