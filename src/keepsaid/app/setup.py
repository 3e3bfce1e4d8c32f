"""The settings that `keepsaid init` writes for the chat model: finds candidates, completes them, tests them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from keepsaid.adapters.models import choose, local_servers
from keepsaid.adapters.models.local_servers import LOOK_S
from keepsaid.app.models import try_model
from keepsaid.config import Config, Home, load
from keepsaid.config.file import read
from keepsaid.config.secret_file import read_secret, reference
from keepsaid.config.settings import ENV_PREFIX, ModelsConfig
from keepsaid.domain.turn import NO_MODEL
from keepsaid.errors import InputError
from keepsaid.text.normal import without_passwords
from keepsaid.values import frozen

AUTO = "auto"
PROVIDERS = tuple(choose.DEFAULTS)
KEY_FILE = "model.key"
"""The file in the config directory that holds a key that was typed, mode 0600."""

_LIST_S = 5.0
_OPENAI, _OLLAMA = "openai", "ollama"
_ADDRESSES = {_OPENAI: "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL", _OLLAMA: "OLLAMA_HOST"}
"""By provider: the variable from which its library takes the address of the server."""


@frozen
class ApiKey:
    """An API key: the secret, and the value that the config file holds for it.

    `is_kept` says that the secret must be written to `KEY_FILE` before the config refers to it.
    """

    secret: str = field(repr=False)
    written: str = field(repr=False)
    is_kept: bool = False


@frozen
class ModelChoice:
    """The settings of a chat model, complete: what the config file will say. `how` says how they were found."""

    chat: str
    base_url: str | None = None
    key: ApiKey | None = None
    how: str = ""

    @property
    def provider(self) -> str:
        """The provider, or the whole of `none` and `auto`."""
        return self.chat.partition("/")[0]

    @property
    def environment(self) -> list[str]:
        """The variables that are set here, and that the model needs in the environment of keepsaid."""
        wanted = [] if self.key else [choose.KEY_VARIABLES.get(self.provider, "")]
        if not (self.provider == _OPENAI and self.base_url):
            wanted.append(_ADDRESSES.get(self.provider, ""))
        return [name for name in wanted if os.environ.get(name)]


NO_KEY = ApiKey(choose.NO_KEY, choose.NO_KEY)


def key_of_variable(name: str) -> ApiKey:
    """Return the key in an environment variable, to which the config will refer. Raises InputError if it has none."""
    if not name.isidentifier() or not (secret := os.environ.get(name)):
        raise InputError(f"the environment variable {name} is not set", hint="export it, then try again")
    return ApiKey(_checked(secret.strip()), f"${{{name}}}")


def key_of_file(path: Path) -> ApiKey:
    """Return the key in a file, to which the config will refer. Raises ConfigError or InputError if it has none."""
    where = path.expanduser().absolute()
    return ApiKey(_checked(read_secret(str(where), where.parent)), reference(str(where)))


def key_to_keep(typed: str, file: str = KEY_FILE) -> ApiKey:
    """Return a key that was typed, which goes into a file. Raises InputError for what cannot be a key."""
    return ApiKey(_checked(typed.strip()), reference(file), is_kept=True)


def _checked(secret: str) -> str:
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InputError("this is not a key: a key has letters, digits and signs, and no spaces")
    return secret


def is_base_url(text: str) -> bool:
    """Whether a text is the URL of a server, with a host."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


class ModelSetup:
    """The models section of one config file, and what can be put there."""

    def __init__(self, home: Home, config: Config) -> None:
        self._file = home.config_file
        self._config = config
        text = self._file.read_bytes().decode("utf-8") if self._file.exists() else ""
        self._raw: Mapping[str, Any] = (yaml.safe_load(text) or {}).get("models") or {}
        self._filled: Mapping[str, Any] = read(self._file).keys.get("models") or {}

    @property
    def chat(self) -> str:
        """The effective value of `models.chat`."""
        return self._config.models.chat

    def completed(self, chat: str, base_url: str | None = None, key: ApiKey | None = None) -> ModelChoice:
        """Return a choice in which what is not given is taken from the settings that are effective now.

        A base URL that is set in the environment alone becomes part of the choice. A key is sent to a new base URL
        only if it is named: the provider's own variable is not.
        """
        provider = chat.partition("/")[0]
        former: str | None = self._filled.get("base_url")
        if chat in (AUTO, NO_MODEL):
            return ModelChoice(chat, former, self._former_key())
        if provider != _OPENAI:
            return ModelChoice(chat, former, key or self._key(provider in (self._provider, AUTO, NO_MODEL)))
        url = base_url or self._config.models.base_url or os.environ.get(_ADDRESSES[_OPENAI])
        is_same = url == former and self._provider in (provider, AUTO, NO_MODEL)
        return ModelChoice(chat, url, key or self._key(is_same) or (_no_key() if url and url != former else None))

    def of_provider(self, chat: str, key: ApiKey | None = None, how: str = "") -> ModelChoice:
        """Return a choice of a provider at its own address."""
        base_url = None if chat.startswith(f"{_OPENAI}/") else self._filled.get("base_url")
        return ModelChoice(chat, base_url, key, how)

    @property
    def _provider(self) -> str:
        return str(self._filled.get("chat", AUTO)).partition("/")[0]

    def _key(self, is_same: bool) -> ApiKey | None:
        """Return the key of the environment, else that of the file if it is for the same server."""
        variable = f"{ENV_PREFIX}MODELS__API_KEY"
        for name, secret in os.environ.items():
            if name.upper() == variable and secret:
                return ApiKey(secret, f"${{{name}}}")
        return self._former_key() if is_same else None

    def _former_key(self) -> ApiKey | None:
        secret = self._filled.get("api_key")
        return ApiKey(str(secret), str(self._raw["api_key"])) if secret else None

    async def candidates(self, *, is_looking: bool, within_s: float = LOOK_S) -> list[ModelChoice]:
        """Return the model that is set and every other that was found, best first.

        Local servers are asked if `is_looking`; if not, only where nothing else was found, for one model of each.
        """
        found = [await self._offered(offer) for offer in choose.found(self._config.models, os.environ)]
        if self.chat not in (AUTO, NO_MODEL):
            current = self.completed(self.chat)
            found.insert(0, ModelChoice(current.chat, current.base_url, current.key, "models.chat names it"))
        if is_looking or all(one.how == _OLLAMA_IS_SET for one in found):
            local = await local_choices(_local_servers(), within_s)
            local = local if is_looking else list({one.how: one for one in reversed(local)}.values())[::-1]
            found = [one for one in found if not (local and one.how == _OLLAMA_IS_SET)]
            found += [self.of_provider(one.chat, how=one.how) if one.provider == _OLLAMA else one for one in local]
        return list({(one.chat, one.base_url): one for one in reversed(found)}.values())[::-1]

    async def _offered(self, offer: choose.ProviderOffer) -> ModelChoice:
        if offer.base_url is None:
            return self.of_provider(offer.name, how=offer.how)
        made = self.completed(offer.name, offer.base_url)
        if self.chat in (AUTO, NO_MODEL):
            secret = made.key.secret if made.key else None
            url, names = await local_servers.models_at(offer.base_url, secret, _LIST_S)
            if not names:
                return ModelChoice(made.chat, made.base_url, made.key, f"{offer.how}, which gives no list of models")
            made = ModelChoice(f"{_OPENAI}/{names[0]}", url, made.key)
        return ModelChoice(made.chat, made.base_url, made.key, offer.how)

    def changes(self, choice: ModelChoice) -> dict[str, str | None]:
        """Return the keys of the section whose values in the file differ from the choice, with their new values."""
        written = choice.key.written if choice.key else None
        wanted = {"chat": choice.chat, "base_url": choice.base_url, "api_key": written}
        return {name: value for name, value in wanted.items() if value != self._raw.get(name)}

    async def test(self, choice: ModelChoice) -> float:
        """Return the seconds until a reply to exactly the settings that will be written.

        Raises ModelError, or ConfigError.
        """
        changed = {"chat": choice.chat, "base_url": choice.base_url}
        secret = {"api_key": choice.key.secret if choice.key else None}
        models = ModelsConfig.model_validate({**self._filled, **changed, **secret})
        return await try_model(self._config.model_copy(update={"models": models}), choice.chat)

    async def test_written(self) -> float:
        """Return the seconds until a reply to the settings in the file, without those in the environment.

        Raises ModelError, or ConfigError.
        """
        config, _ = load(self._file)
        models = ModelsConfig.model_validate(read(self._file).keys.get("models") or {})
        return await try_model(config.model_copy(update={"models": models}), models.chat)


_OLLAMA_IS_SET = "OLLAMA_HOST is set"


def _no_key() -> ApiKey | None:
    """Return a key that keeps OPENAI_API_KEY from being sent to a server that it is not for."""
    return NO_KEY if os.environ.get(choose.KEY_VARIABLES[_OPENAI]) else None


def _local_servers() -> list[local_servers.LocalServer]:
    address = choose.ollama_address(os.environ.get("OLLAMA_HOST"))
    ollama = local_servers.LocalServer("Ollama", _OLLAMA, address)
    return [ollama, *(one for one in local_servers.LOCAL_SERVERS if one.provider != _OLLAMA)]


async def local_choices(servers: list[local_servers.LocalServer], within_s: float = LOOK_S) -> list[ModelChoice]:
    """Return the chat models of the servers that answer, in the order of the servers."""
    found = []
    for server, names in await local_servers.offered_by(servers, within_s):
        url, key = (None, None) if server.provider == _OLLAMA else (server.base_url, _no_key())
        how = f"{server.title} at {server.place}"
        found += [ModelChoice(f"{server.provider}/{name}", url, key, how) for name in names]
    return found


async def models_at(base_url: str, key: ApiKey | None) -> tuple[str, list[str]]:
    """Return the base URL that answered, with `/v1` added if that was missing, and the names of its models."""
    url, names = await local_servers.models_at(base_url, key.secret if key else None, _LIST_S)
    return url, [f"{_OPENAI}/{name}" for name in names]


def shown_url(choice: ModelChoice) -> str:
    """Return the base URL of a choice without a password; empty if it has none."""
    return without_passwords(choice.base_url or "") if choice.provider == _OPENAI else ""


def default_model(provider: str) -> str:
    """Return the model of a provider that is proposed first, as `models.chat` names it."""
    return f"{provider}/{choose.DEFAULTS[provider]}"
