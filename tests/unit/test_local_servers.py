"""Model servers on this machine: all are asked at once, within half a second, and none is trusted with a key."""

from __future__ import annotations

import json

import pytest
from tests.waits import HANG_S

from keepsaid.adapters.models.local_servers import LOCAL_SERVERS, LocalServer, models_at, offered_by
from keepsaid.app.setup import NO_KEY, ModelSetup, local_choices
from keepsaid.config import Config, Home
from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import Connection
from keepsaid.testing.model_server import ModelServer

NOTHING_THERE = LocalServer("Ollama", "ollama", "http://127.0.0.1:9/v1")


class Listing(ListeningServer):
    """A server that answers every request with one body, or never; it notes the heads of the requests."""

    def __init__(self, body: bytes | None) -> None:
        super().__init__(self._reply, 0)
        self._body = body
        self.headers: list[dict[str, str]] = []

    async def _reply(self, connection: Connection) -> None:
        request = await connection.receive()
        self.headers.append(dict(request.headers))
        if self._body is None:
            await connection.pause(None)
        else:
            await connection.send(200, self._body)
        await connection.close()


def body(*names: object) -> bytes:
    return json.dumps({"data": [{"id": name} for name in names]}).encode()


def named(server: ListeningServer, title: str = "LM Studio") -> LocalServer:
    return LocalServer(title, "openai", f"{server.url}/v1")


def test_only_loopback_is_asked_without_being_named() -> None:
    assert {one.place.rpartition(":")[0] for one in LOCAL_SERVERS} == {"127.0.0.1"}
    assert [one.place.rpartition(":")[2] for one in LOCAL_SERVERS] == ["11434", "1234", "8080", "8000"]


async def test_servers_that_answer_are_listed_and_the_others_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "for-openai-alone")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with Listing(body("qwen/qwen3-8b", "nomic-embed-text")) as quick:
        [choice] = await local_choices([NOTHING_THERE, named(quick)], HANG_S)
        assert [choice.chat, choice.base_url] == ["openai/qwen/qwen3-8b", f"{quick.url}/v1"]
        assert choice.how == f"LM Studio at {quick.url.removeprefix('http://')}"
        assert choice.key == NO_KEY, "the key of OpenAI must not be sent to it later either"
        assert "authorization" not in quick.headers[0]


async def test_a_server_that_does_not_answer_in_time_is_left_out() -> None:
    async with Listing(None) as silent:
        assert await offered_by([named(silent), NOTHING_THERE], 0.01) == []


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"[]",
        b'{"data": {}}',
        b'{"data": [1, {"id": 2}, {}]}',
        body("", "a b", "line\nfeed", "esc\x1b[31m", "x" * 201, "text-embedding-3"),
        body("a") + b" " * 1_000_001,
    ],
)
async def test_what_lists_no_chat_model_is_left_out(answer: bytes) -> None:
    async with Listing(answer) as other:
        assert await offered_by([named(other)], HANG_S) == []


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
async def test_the_base_url_that_answers_is_found_with_and_without_v1(path: str) -> None:
    async with ModelServer() as server:
        root = server.url.removesuffix("/v1")
        assert await models_at(f"{root}{path}", "key", HANG_S) == (server.url, ["scripted"])
        assert await models_at(f"{root}/other", None, HANG_S) == (f"{root}/other", [])


async def test_the_model_that_is_set_comes_first_and_local_servers_are_asked_only_where_nothing_else_is(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    own = Config(models={"chat": "openai/own"})
    home = Home.at(tmp_path_factory.mktemp("home"))
    async with Listing(body("qwen3", "llama")) as ollama:
        monkeypatch.setenv("OLLAMA_HOST", ollama.url)
        found = await ModelSetup(home, Config()).candidates(is_looking=True, within_s=HANG_S)
        assert [one.chat for one in found][:2] == ["ollama/qwen3", "ollama/llama"]
        found = await ModelSetup(home, Config()).candidates(is_looking=False, within_s=HANG_S)
        assert [one.chat for one in found][:1] == ["ollama/qwen3"]
        assert "ollama/llama" not in [one.chat for one in found]
        asked = len(ollama.headers)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        found = await ModelSetup(home, own).candidates(is_looking=False, within_s=HANG_S)
        assert [one.chat for one in found] == ["openai/own", "anthropic/claude-sonnet-4-5", "ollama/qwen3"]
        assert found[0].how == "models.chat names it"
        assert len(ollama.headers) == asked
