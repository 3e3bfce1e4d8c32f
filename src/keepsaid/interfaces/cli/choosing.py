"""How `keepsaid init` arrives at a model: by its options, by trying what was found, or by asking on a terminal."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from keepsaid.app import setup
from keepsaid.config import Config, Home
from keepsaid.domain.turn import NO_MODEL
from keepsaid.errors import (
    ConfigError,
    InputError,
    KeepsaidError,
    ModelAuth,
    ModelError,
    ModelRejected,
    ModelUnreachable,
)
from keepsaid.interfaces.cli.console import from_stdin, say
from keepsaid.interfaces.cli.escapes import visible
from keepsaid.values import frozen

NOTHING_SAVED = "Nothing was saved; the config is as it was."
_SHOWN_MAX = 12
_SERVER, _OPENAI, _ANTHROPIC = "server", "openai", "anthropic"
_WAYS = {
    _SERVER: "an OpenAI-compatible server; asks for its URL and key",
    _OPENAI: "asks for a key",
    _ANTHROPIC: "asks for a key",
    NO_MODEL: "messages are stored, and answers quote memory",
}


@frozen
class ModelSelection:
    """The model to save, if there is one, the seconds until it replied, and how many models did not reply."""

    choice: setup.ModelChoice | None = None
    seconds: float | None = None
    failed: int = 0


@frozen
class InitOptions:
    """What the options of the command name."""

    model: str | None
    base_url: str | None
    key_env: str | None
    key_file: str | None

    @property
    def is_empty(self) -> bool:
        """Whether no option was given."""
        return self == InitOptions(None, None, None, None)

    def check(self) -> None:
        """Raise BadParameter for options that name no model or server, before anything is asked or tested."""
        model, url = self.model, self.base_url
        provider, _, name = (model or "").partition("/")
        if model not in (None, NO_MODEL, setup.AUTO) and (provider not in setup.PROVIDERS or not name):
            known = ", ".join(f"{one}/NAME" for one in setup.PROVIDERS)
            meant = f"; for a model {model} at a server of your own: --base-url URL --model openai/{model}"
            raise typer.BadParameter(f"{model!r} is not one of: {known}, none{meant}", param_hint="--model")
        if url is not None and not setup.is_base_url(url):
            example = "http://127.0.0.1:1234/v1"
            raise typer.BadParameter(f"{url!r} is not a URL such as {example}", param_hint="--base-url")
        if url is not None and model is not None and provider != _OPENAI:
            raise typer.BadParameter(f"only openai/NAME has a base URL, not {model}", param_hint="--base-url")
        if self.key_env and self.key_file:
            raise typer.BadParameter("--key-env and --key-file exclude each other", param_hint="--key-file")
        if model == NO_MODEL and (self.key_env or self.key_file):
            raise typer.BadParameter("without a model there is no use for a key", param_hint="--model")

    def key(self) -> setup.ApiKey | None:
        """Return the key that was named. Raises InputError or ConfigError if it cannot be read."""
        if self.key_env:
            return setup.key_of_variable(self.key_env)
        if self.key_file:
            return setup.key_to_keep(from_stdin()) if self.key_file == "-" else setup.key_of_file(Path(self.key_file))
        return None


def choose(home: Home, config: Config, named: InitOptions, *, ask: bool) -> tuple[setup.ModelSetup, ModelSelection]:
    """Return what the config file holds for its model, and the model to write there, tested.

    Raises ModelError, ConfigError or InputError if a model was named and gives no reply.
    """
    models = setup.ModelSetup(home, config)
    if not named.is_empty:
        return models, _choose_named(models, named, ask=ask)
    return models, _choose_at_prompt(models) if ask else _choose_first(models)


def _choose_named(models: setup.ModelSetup, named: InitOptions, *, ask: bool) -> ModelSelection:
    """Return the model that the options name. Raises KeepsaidError if it gives no reply or is not clear."""
    try:
        key = named.key()
    except (InputError, ConfigError) as error:
        error.safe = NOTHING_SAVED
        raise
    chat, url = named.model, named.base_url
    if chat is None and url is not None:
        url, listed = asyncio.run(setup.models_at(url, key))
        chat = _only_one(listed, url, ask=ask)
    chat = chat or models.chat
    if named.model is None and chat in (setup.AUTO, NO_MODEL):
        what = "name the model that the key is for, with --model PROVIDER/NAME"
        raise InputError(what, safe=NOTHING_SAVED, hint="keepsaid init --help")
    if chat == NO_MODEL:
        return ModelSelection(models.completed(NO_MODEL))
    choice = models.completed(chat, url, key)
    try:
        return ModelSelection(choice, _tested(models, choice))
    except (ModelError, ConfigError) as error:
        raise in_words_of_init(error, choice) from error


def _choose_first(models: setup.ModelSetup) -> ModelSelection:
    """Return the first model that replies, of the one that is set and those that are found."""
    found = _found(models, is_looking=False)
    for choice in found:
        if (seconds := _seconds(models, choice)) is not None:
            return ModelSelection(choice, seconds)
    return ModelSelection(failed=len(found))


def _choose_at_prompt(models: setup.ModelSetup) -> ModelSelection:
    """Return the model that the person picks or describes, once it has replied."""
    found = _found(models, is_looking=True)
    names = [one.chat for one in found]
    shown = [*names[:_SHOWN_MAX], *_WAYS]
    hows = [*(one.how for one in found[:_SHOWN_MAX]), *_WAYS.values()]
    width = max(map(len, shown))
    for number, (name, how) in enumerate(zip(shown, hows, strict=True), 1):
        say(f"  {number:2}  {name:{width}}  {how}")
    if len(names) > _SHOWN_MAX:
        say(f"      and {len(names) - _SHOWN_MAX} more, which can be typed by name: {' '.join(names[_SHOWN_MAX:])}")
    while True:
        picked = _pick("Use for chat?", shown, [*names, *_WAYS])
        if picked == NO_MODEL:
            return ModelSelection(models.completed(NO_MODEL))
        choice = found[names.index(picked)] if picked in names else _prompt_way(models, picked)
        if choice is not None and (seconds := _seconds(models, choice)) is not None:
            return ModelSelection(choice, seconds)


def _tested(models: setup.ModelSetup, choice: setup.ModelChoice) -> float:
    """Return the seconds until the model replied, said on stderr. Raises ModelError or ConfigError."""
    return _timed(choice.chat, lambda: asyncio.run(models.test(choice)))


def tested_as_written(models: setup.ModelSetup, choice: setup.ModelChoice) -> float:
    """Return the seconds until the model replied to the settings in the file. Raises ModelError or ConfigError."""
    return _timed(f"{choice.chat} as written", lambda: asyncio.run(models.test_written()))


def in_words_of_init(error: KeepsaidError, choice: setup.ModelChoice) -> KeepsaidError:
    """Return the error with what is safe and what to run now, while a model is set up and no message waits."""
    error.safe = NOTHING_SAVED
    url = setup.shown_url(choice)
    command = f"keepsaid init --model {choice.chat}" + f" --base-url {url}" * bool(url)
    if isinstance(error, ModelAuth):
        variable = next((name for name in ("OPENAI_API_KEY",) if url and os.environ.get(name)), "NAME")
        error.hint = f"{command} --key-env {variable}"
        if variable == "NAME":
            error.hint += ", where NAME is the variable that holds the key"
    elif isinstance(error, ModelUnreachable):
        server = f"check that a server listens at {url}" if url else "check the network connection"
        server = "start Ollama, or set OLLAMA_HOST to its address" if choice.provider == "ollama" else server
        error.hint = f"{server}, then: {command}"
    elif isinstance(error, ModelRejected):
        error.hint = f"check the name of the model at the provider, then: {command}"
    else:
        error.hint = f"try again: {command}"
    return error


def _timed(what: str, test: Callable[[], float]) -> float:
    say(f"  testing {what} ...")
    seconds = round(test(), 2)
    say(f"  {what} replied in {seconds:g} s")
    return seconds


def _found(models: setup.ModelSetup, *, is_looking: bool) -> list[setup.ModelChoice]:
    found = asyncio.run(models.candidates(is_looking=is_looking))
    say("Models found" if found else "No model found: no API key is set, and no local model server answers.")
    for one in () if is_looking else found:
        say(f"  {one.chat}   {one.how}")
    return found


def _seconds(models: setup.ModelSetup, choice: setup.ModelChoice) -> float | None:
    """Return the seconds until the model replied; None, and why on stderr, if it did not."""
    try:
        return _tested(models, choice)
    except (ModelError, ConfigError) as error:
        say(f"  {choice.chat} gave no reply: {error.what}")
        return None


def _only_one(listed: Sequence[str], url: str, *, ask: bool) -> str:
    """Return the model to use of those that a server lists. Raises InputError if that is not clear."""
    if len(listed) == 1:
        return listed[0]
    if listed and ask:
        return _pick_listed(listed)
    hint = f"keepsaid init --base-url {url} --model openai/NAME"
    if listed:
        what = f"name the model: {url} lists {', '.join(listed[:_SHOWN_MAX])}"
        raise InputError(what, safe=NOTHING_SAVED, hint=hint)
    what = f"no server answers at {url}, or it gives no list of models"
    raise InputError(what, safe=NOTHING_SAVED, hint=f"start the server and repeat this, or name its model: {hint}")


def _pick(question: str, shown: Sequence[str], known: Sequence[str]) -> str:
    """Return the name that was picked, by its number among those shown or as it is."""
    while True:
        answer = str(typer.prompt(question, default="1", err=True)).strip()
        if answer in known:
            return answer
        if answer.isdecimal() and 1 <= int(answer) <= len(shown):
            return shown[int(answer) - 1]
        say(f"  {answer!r} is not a choice: type a number from 1 to {len(shown)}, or a name")


def _pick_listed(listed: Sequence[str]) -> str:
    for number, name in enumerate(listed[:_SHOWN_MAX], 1):
        say(f"  {number:2}  {name}")
    return _pick("Which model?", listed[:_SHOWN_MAX], listed)


def _prompt_way(models: setup.ModelSetup, way: str) -> setup.ModelChoice | None:
    """Return the model that the answers describe; None, and why on stderr, if they describe none."""
    try:
        return _prompt_server(models) if way == _SERVER else _prompt_provider(models, way)
    except InputError as error:
        say(f"  {error.what}")
        return None


def _prompt_server(models: setup.ModelSetup) -> setup.ModelChoice | None:
    while not setup.is_base_url(url := typer.prompt("Base URL, such as http://127.0.0.1:1234/v1", err=True).strip()):
        say(f"  {visible(repr(url))} is not a URL of a server; Ctrl-C ends this")
    key = _prompt_key("Key, not shown (Enter if the server needs none)") or None
    url, listed = asyncio.run(setup.models_at(url, key))
    if listed:
        return models.completed(_pick_listed(listed), url, key)
    name = typer.prompt(
        f"{visible(url)} gives no list of models, or does not answer. Name of the model", err=True
    ).strip()
    return models.completed(f"{_OPENAI}/{name.removeprefix(f'{_OPENAI}/')}", url, key) if name else None


def _prompt_provider(models: setup.ModelSetup, provider: str) -> setup.ModelChoice | None:
    if (key := _prompt_key(f"Key for {provider}, not shown")) is None:
        say("  no key was typed")
        return None
    default = setup.default_model(provider)
    name = typer.prompt("Model", default=default, err=True).strip()
    return models.of_provider(f"{provider}/{name.removeprefix(f'{provider}/')}", key)


def _prompt_key(question: str) -> setup.ApiKey | None:
    """Return a key that is typed without being shown; None for an empty line. Raises InputError for what is none."""
    typed = typer.prompt(question, default="", show_default=False, hide_input=True, err=True)
    return setup.key_to_keep(typed) if typed.strip() else None
