"""Chooses the model that a setting means, without importing a provider; and answers when no model is set."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING

from keepsaid.config.settings import ModelsConfig
from keepsaid.domain.attributes import slot_name
from keepsaid.domain.prompt import Prompt, Record, Role
from keepsaid.domain.statements import extract_statements
from keepsaid.domain.turn import NO_MODEL, ModelAnswer
from keepsaid.errors import ConfigError, ModelAuth, ModelMalformed, ModelTimeout, ModelUnavailable
from keepsaid.ports.model import AgentFunction, AgentPrompt, Delta, Model, ModelRequest
from keepsaid.ports.runtime import read_sentences
from keepsaid.text.languages import function_words
from keepsaid.text.memory_commands import object_to_forget
from keepsaid.text.normal import cut, without_passwords
from keepsaid.text.topics import only_asks
from keepsaid.text.words import fold
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid.adapters.models.provider import ProviderChat

_QUOTED_MAX = 5
_QUOTE_CHARS_MAX = 300
_LOOKED_AT_MAX, _READ_CHARS_MAX, _NAME_CHARS_MAX = 100, 1_000, 80
"""The newest records of a lane that are read, and the characters of each and of the message."""
_HEADERS = ("[Context from memory", "[Pinned context]", "[Relevant to this message]", "[End of data")
_WORD = re.compile(r"\w+")


class OfflineResponder:
    """Says that no model is set, quotes what memory holds about the message, names the next command."""

    @property
    def name(self) -> str:
        return NO_MODEL

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        await request.begun()
        lines = request.prompt.recalled.splitlines()
        recalled = (line for line in lines if line.strip() and not line.startswith(_HEADERS))
        said = await read_sentences(partial(_said_here, request.prompt), _chars(request.prompt))
        text = _answer(list(recalled), said, _how_to_forget(request.prompt.user))
        delta(text)
        return ModelAnswer(text, model=NO_MODEL)


def _answer(remembered: list[str], said: list[str], how_to_forget: str) -> str:
    parts = ["No model is set, so I cannot answer; your message is stored."]
    if how_to_forget:
        parts.append(how_to_forget)
    parts += _quoted("What I remember about it:", remembered, ": keepsaid memory search WORDS")
    parts += _quoted("What was said about it in this conversation:", said)
    if not (remembered or said):
        parts.append("I remember nothing about it yet.")
    parts.append("To set a model: keepsaid init")
    return "\n".join(parts)


def _quoted(heading: str, quotes: list[str], where: str = "") -> list[str]:
    """A heading with some of the quotes below it, and where more are found; nothing without quotes."""
    lines = [heading] * bool(quotes) + [f"  - {cut(quote, _QUOTE_CHARS_MAX)}" for quote in quotes[:_QUOTED_MAX]]
    return lines + [f"  - and {len(quotes) - _QUOTED_MAX} more{where}"] * (len(quotes) > _QUOTED_MAX)


def _how_to_forget(text: str) -> str:
    """Return the commands that forget what a message asks to forget; "" if it asks nothing of the kind."""
    words = object_to_forget(text[:_READ_CHARS_MAX])
    if words is None:
        return ""
    searched = shlex.quote(words[:_NAME_CHARS_MAX].strip()) if words else "WORDS"
    return f"Nothing was forgotten: find the id with keepsaid memory search {searched}, then send /forget ID here."


def _chars(prompt: Prompt) -> int:
    return sum(len(one.text) for one in prompt.history[-_LOOKED_AT_MAX:])


def _said_here(prompt: Prompt) -> list[str]:
    """What people said in this lane that shares a word with the message; recall leaves out what a prompt shows."""
    asked, lately = _content_words(prompt.user), [_parted(one) for one in prompt.history if one.role is Role.USER]
    newest = lately[-_LOOKED_AT_MAX:]
    filled: dict[tuple[str, str], str] = {}
    matching: list[tuple[str, str, str]] = []
    for who, text in newest:
        slots = list(_slots(text))
        filled |= {(who, slot): text for slot in slots}
        if asked & _content_words(text) and not only_asks(text):
            matching.append((who, text, slots[0] if slots else ""))
    # what was said before something else filled the same slot gives way to that
    said = dict.fromkeys((who, filled.get((who, slot), text)) for who, text, slot in reversed(matching))
    named = (f"{speaker}: " * bool(speaker) + text[:_READ_CHARS_MAX] for speaker, text in said)
    return [" ".join(text.split()) for text in named]


def _parted(record: Record) -> tuple[str, str]:
    """Who said something, and what: where several speak, the name stands before the text."""
    name, parts, text = record.text.partition(": ")
    is_named = not record.speaker and parts and len(name) <= _NAME_CHARS_MAX and "\n" not in name
    return (name, text) if is_named else (record.speaker, record.text)


def _slots(text: str) -> Iterator[str]:
    return (slot_name(fact.attribute) for fact in extract_statements(text[:_READ_CHARS_MAX]) if fact.attribute)


def _content_words(text: str) -> set[str]:
    grammar = function_words(text)
    return {word for word in map(fold, _WORD.findall(text[:_READ_CHARS_MAX])) if word not in grammar}


class Punctual:
    """Passes calls on once they are on record, and breaks off those that take too long."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """One call; raises ModelTimeout after `limit_s`, and what the model raises."""
        await request.begun()
        try:
            async with asyncio.timeout(request.limit_s):
                return await self._model.answer(request, delta)
        except TimeoutError:
            raise ModelTimeout(f"{self.name} did not answer within {request.limit_s:g} s") from None


class FunctionModel:
    """Answers by a function of the program that uses the library; it has no tools."""

    def __init__(self, function: AgentFunction) -> None:
        self._function = function

    @property
    def name(self) -> str:
        return f"function/{getattr(self._function, '__name__', type(self._function).__name__)}"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """One call of the function; raises ModelUnavailable for its errors, ModelMalformed for other than text."""
        await request.begun()
        try:
            prompt = request.prompt
            said = tuple((str(one.role), one.text) for _, one in prompt.parts if one.role is not Role.TOOL)
            answered = self._function(AgentPrompt(prompt.system, said, prompt.recalled, prompt.user))
            text = await answered if isawaitable(answered) else answered
        except Exception as error:  # guard: model adapter - a function of somebody else's may raise anything
            raise ModelUnavailable(f"{self.name} failed ({type(error).__name__}: {error})") from error
        if not isinstance(text, str):
            raise ModelMalformed(f"{self.name} returned {type(text).__name__}, not text")
        delta(text)
        return ModelAnswer(text, model=self.name)


_OLLAMA_PORT = 11_434

DEFAULTS: Mapping[str, str] = {"openai": "gpt-5-mini", "anthropic": "claude-sonnet-4-5", "ollama": "qwen3"}
"""Providers, and the model that is tried first."""

KEY_VARIABLES: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""By provider: the variable that holds its key."""

NO_KEY = "no-key-needed"
"""A key for a server that needs none; it keeps the provider's own variable from being sent there."""


@frozen
class ProviderOffer:
    """A model that could be used: its name for `models.chat`, how it was found, and the base URL it needs."""

    name: str
    how: str
    base_url: str | None = None


def found(models: ModelsConfig, environment: Mapping[str, str]) -> list[ProviderOffer]:
    """Providers with a key or an address, best first; nothing is called."""
    at_hand = []
    if models.base_url:
        name = models.chat if "/" in models.chat else f"openai/{DEFAULTS['openai']}"
        how = f"models.base_url {without_passwords(models.base_url)}"
        at_hand.append(ProviderOffer(name, how, models.base_url))
    for provider, variable in KEY_VARIABLES.items():
        if environment.get(variable):
            at_hand.append(ProviderOffer(f"{provider}/{DEFAULTS[provider]}", f"{variable} is set"))
    if environment.get("OLLAMA_HOST"):
        at_hand.append(ProviderOffer(f"ollama/{DEFAULTS['ollama']}", "OLLAMA_HOST is set"))
    return at_hand


def keys_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that would be used, as they stand in the environment."""
    return tuple(filter(None, (environment.get(variable) for variable in KEY_VARIABLES.values())))


_VARIABLE = "KEEPSAID_MODELS__CHAT"


def chosen(models: ModelsConfig, environment: Mapping[str, str] | None = None) -> str:
    """The `provider/name` a setting means, or `none`; raises ConfigError for one that means nothing."""
    environment = os.environ if environment is None else environment
    if models.chat == "auto":
        at_hand = found(models, environment)
        return at_hand[0].name if at_hand else "none"
    if models.chat == "none":
        return "none"
    provider, _, name = models.chat.partition("/")
    if provider not in DEFAULTS or not name:
        known = ", ".join(f"{known}/NAME" for known in DEFAULTS)
        what = f"models.chat {models.chat!r} is not one of: auto, none, {known}"
        if environment.get(_VARIABLE) == models.chat:
            raise ConfigError(f"{what} (environment variable {_VARIABLE})", hint=f"unset {_VARIABLE}")
        raise ConfigError(what, hint="keepsaid config set models.chat PROVIDER/NAME")
    return models.chat


def place_of(name: str, models: ModelsConfig, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return where a model is called, without a password, and where its key comes from; empty for no model."""
    provider = name.partition("/")[0]
    if provider not in DEFAULTS:
        return "", ""
    variable = KEY_VARIABLES.get(provider, "")
    key = f"key in {variable}" if environment.get(variable) else "no key"
    if provider == "ollama":
        where = ollama_address(environment.get("OLLAMA_HOST"))
    else:
        where = (models.base_url if provider == "openai" else None) or f"the address of {provider}"
    return without_passwords(where), "key in the config" if models.api_key else key


class LazyChat:
    """A provider's model whose library is imported, off the loop, by the first call.

    `instrument` makes the settings by which that library traces its calls.
    """

    def __init__(self, name: str, models: ModelsConfig, instrument: Callable[[], object] | None = None) -> None:
        self._name = name
        self._models = models
        self._instrument = instrument
        self._chat: ProviderChat | None = None
        self._opening = asyncio.Lock()
        self._places = asyncio.Semaphore(models.concurrent_max)

    @property
    def name(self) -> str:
        return self._name

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """One call, once fewer than `models.concurrent_max` others are under way; raises a ModelError."""
        async with self._places:
            return await (await self._ready()).answer(request, delta)

    async def load(self) -> None:
        await self._ready()

    async def _ready(self) -> Model:
        async with self._opening:
            if self._chat is None:
                self._chat = await asyncio.to_thread(self._open)
        return self._chat

    def _open(self) -> ProviderChat:
        from keepsaid.adapters.models.provider import ProviderChat, build  # noqa: PLC0415 - half a second to import

        provider, _, model = self._name.partition("/")
        given = self._models.api_key
        key = given.get_secret_value() if given else os.environ.get(KEY_VARIABLES.get(provider, ""))
        # without an address the provider's library knows it; `models.base_url` is for openai/ names alone
        address = self._models.base_url if provider == "openai" else None
        if provider == "ollama":
            address = ollama_address(os.environ.get("OLLAMA_HOST"))
        if not key and not address and provider in KEY_VARIABLES:
            raise ModelAuth(f"{self._name} needs a key: {KEY_VARIABLES[provider]} is not set", hint="keepsaid init")
        instrument = self._instrument() if self._instrument is not None else None
        return ProviderChat(self._name, lambda: build(provider, model, key or NO_KEY, address), instrument)

    async def close(self) -> None:
        if self._chat is not None:
            await self._chat.close()


def ollama_address(host: str | None) -> str:
    """Ollama's address as its own client reads it: the port is 11434 where neither port nor scheme is named."""
    address = (host or "127.0.0.1").rstrip("/")
    if "://" not in address:
        address = f"http://{address}" if re.search(r":\d+$", address) else f"http://{address}:{_OLLAMA_PORT}"
    return f"{address}/v1"
