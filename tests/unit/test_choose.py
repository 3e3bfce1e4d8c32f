from __future__ import annotations

import asyncio

import pytest

from keepsaid.adapters.models.choose import LazyChat, ollama_address
from keepsaid.app.models import try_model
from keepsaid.config import Config
from keepsaid.config.settings import ModelsConfig
from keepsaid.domain.prompt import Prompt
from keepsaid.errors import ConfigError, ModelAuth, ModelUnreachable
from keepsaid.ports.model import ModelRequest
from keepsaid.testing.model_script import Hang, Say, Script
from keepsaid.testing.model_server import ModelServer

ASKED = ModelRequest(Prompt("", (), "", "hello"), limit_s=5.0)
UNREACHABLE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)


async def answered(name: str, models: ModelsConfig) -> str:
    chat = LazyChat(name, models)
    try:
        return (await chat.answer(ASKED, lambda _: None)).text
    finally:
        await chat.close()


async def test_only_openai_names_go_to_the_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", UNREACHABLE)
    async with ModelServer(Script(default=Say("hi"))) as server:
        models = ModelsConfig.model_validate({"base_url": server.url})
        assert await answered("openai/any", models) == "hi"
        with pytest.raises(ModelUnreachable):
            await answered("ollama/any", models)
        with pytest.raises(ModelAuth, match="ANTHROPIC_API_KEY is not set"):
            await answered("anthropic/any", models)
        assert len(server.requests) == 1


@pytest.mark.parametrize("name", ["auto", "none"])
async def test_no_model_cannot_be_tried(name: str) -> None:
    with pytest.raises(ConfigError, match=f"models.chat '{name}' names no model"):
        await try_model(Config(), name)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        (None, "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://0.0.0.0:11434/v1"),
        ("box:8080", "http://box:8080/v1"),
        ("https://box/", "https://box/v1"),
    ],
)
def test_an_ollama_is_found_where_its_own_client_looks(host: str | None, address: str) -> None:
    assert ollama_address(host) == address


async def test_no_more_calls_at_once_than_the_model_may_have() -> None:
    async with ModelServer(Script(default=Hang())) as server:
        models = ModelsConfig.model_validate({"base_url": server.url, "concurrent_max": 2})
        chat = LazyChat("openai/any", models)
        calls = [asyncio.create_task(chat.answer(ASKED, lambda _: None)) for _ in range(3)]
        await server.wait_for(2)
        assert len(server.requests) == 2
        calls[0].cancel()
        await server.wait_for(3)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await chat.close()
