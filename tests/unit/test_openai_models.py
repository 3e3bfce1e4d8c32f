"""The endpoint around its calls: models, embeddings, keys, and errors in OpenAI's form."""

from __future__ import annotations

import asyncio
import json
from array import array
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
import pytest_asyncio
from tests.unit.http_cast import site
from tests.unit.openai_cast import PROVIDER_KEY, ProxySite, proxy_site, token

from keepsaid.config import Config
from keepsaid.testing.model_script import Hang, Refuse, Script
from keepsaid.testing.model_server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALL: dict[str, Any] = {"model": "memory/both", "messages": [{"role": "user", "content": "hi"}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProxySite]:
    async with proxy_site(tmp_path_factory.mktemp("home"), memory={"embedder": "hashed"}) as running:
        yield running


def refused(answer: httpx2.Response, status: int) -> dict[str, Any]:
    """The error in OpenAI's form, without anything of our inside."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["message"]
    for inside in ("Traceback", 'File "', "apsw", "httpx", PROVIDER_KEY, *(token(key) for key in ("ann", "bob"))):
        assert inside not in answer.text
    return error


async def test_each_key_sees_the_models_that_it_may_use(one: ProxySite) -> None:
    async with one.client("ann") as ann, one.client("bob") as bob, one.client("talker") as talker:
        names = [model.id async for model in ann.models.list()]
        assert names == ["keepsaid", "memory/both", "memory/narrow", "memory/off", "memory/read", "memory/write"]
        assert "memory/own" in [model.id async for model in bob.models.list()]
        assert [model.id async for model in talker.models.list()] == ["keepsaid", "memory/off"]
        assert (await ann.models.retrieve("memory/both")).id == "memory/both"
        with pytest.raises(openai.NotFoundError):
            await ann.models.retrieve("memory/own")
    plain = await one.here.client.get("/v1/models/memory/off", headers={"Authorization": f"Bearer {token('ann')}"})
    assert plain.json()["object"] == "model"


async def test_endpoint_is_off_until_a_key_exists(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as here:
        for path in ("/v1/models", "/v1/models/keepsaid"):
            assert "off" in refused(await here.client.get(path, headers=here.owner), 404)["message"]
        for path in ("/v1/chat/completions", "/v1/embeddings"):
            refused(await here.client.post(path, json=CALL, headers=here.owner), 404)


async def test_vectors_are_those_of_the_embedder_in_both_encodings(one: ProxySite) -> None:
    embedding = one.here.instance.embedding
    assert embedding is not None
    [wanted] = await embedding.embedder.texts(["a kayak"])
    async with one.client("reader") as client:
        # the library asks for base64 by itself
        made = await client.embeddings.create(model="keepsaid", input=["a kayak", "a tent"])
        assert array("f", made.data[0].embedding).tobytes() == wanted
        assert [item.index for item in made.data] == [0, 1]
        assert made.usage.prompt_tokens == made.usage.total_tokens > 0
        floats = await client.embeddings.create(model="keepsaid", input="a kayak", encoding_format="float")
        assert array("f", floats.data[0].embedding).tobytes() == wanted
        size = len(wanted) // 4
        again = await client.embeddings.create(model=floats.model, input="a kayak", dimensions=size)
        assert len(again.data[0].embedding) == size
    head = {"Authorization": f"Bearer {token('reader')}"}
    fields = {"model": "keepsaid", "input": "a kayak", "encoding_format": "base64"}
    raw = await one.here.client.post("/v1/embeddings", json=fields, headers=head)
    assert b64decode(raw.json()["data"][0]["embedding"]) == wanted


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": "a"}, "model"),
        ({"model": "keepsaid"}, "input"),
        ({"model": "keepsaid", "input": []}, "input"),
        ({"model": "keepsaid", "input": ""}, "input"),
        ({"model": "keepsaid", "input": [1, 2]}, "input"),
        ({"model": "keepsaid", "input": ["a"] * 513}, "input"),
        ({"model": "keepsaid", "input": "a" * 100_001}, "input"),
        ({"model": "keepsaid", "input": "a", "dimensions": 7}, "dimensions"),
        ({"model": "keepsaid", "input": "a", "encoding_format": "hex"}, "encoding_format"),
    ],
)
async def test_embeddings_name_the_parameter_that_is_wrong(one: ProxySite, fields: Any, param: str) -> None:
    head = {"Authorization": f"Bearer {token('ann')}"}
    error = refused(await one.here.client.post("/v1/embeddings", json=fields, headers=head), 400)
    assert error["param"] == param


async def test_embeddings_of_another_model_or_without_an_embedder_are_not_found(one: ProxySite, tmp_path: Path) -> None:
    fields = {"model": "text-embedding-3-small", "input": "a"}
    head = {"Authorization": f"Bearer {token('ann')}"}
    error = refused(await one.here.client.post("/v1/embeddings", json=fields, headers=head), 404)
    assert error["code"] == "model_not_found"
    async with proxy_site(tmp_path, memory={"embedder": "none"}) as bare:
        answer = await bare.here.client.post("/v1/embeddings", json={"model": "keepsaid", "input": "a"}, headers=head)
        assert refused(answer, 404)["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b"[]", 400, None),
        (b'{"model": "memory/both", "model": "memory/off", "messages": []}', 400, None),
        (b'{"messages": []}', 400, "model"),
        (b'{"model": 7}', 400, "model"),
        (b'{"model": "memory/both\xff"}', 400, None),
        (b'{"model": "memory/none", "messages": []}', 404, None),
        (b'{"model": "gpt-5", "messages": []}', 404, None),
        (b'{"model": "memory/own", "messages": []}', 404, None),
    ],
)
async def test_bad_input_is_refused_in_the_form_of_openai(one: ProxySite, body: bytes, status: int, param: str) -> None:
    before = len(one.provider.requests)
    error = refused(await one.post(body), status)
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert error["code"] == ("model_not_found" if status == 404 else error["code"])
    assert len(one.provider.requests) == before


@pytest.mark.parametrize("messages", [None, "hi", [], [7], [{"role": "user"}], [{"role": 7, "content": {}}]])
async def test_messages_of_any_form_are_left_to_the_provider(one: ProxySite, messages: object) -> None:
    one.provider.script = Script(default=Refuse(400, "bad_messages", "messages are wrong"))
    answer = await one.post({"model": "memory/both", "messages": messages})
    assert answer.status_code == 400
    assert "message" in answer.json()["error"]
    one.provider.script = Script()


async def test_callers_without_a_right_key_are_refused(one: ProxySite) -> None:
    assert refused(await one.here.client.post("/v1/chat/completions", json=CALL), 401)["code"] == "invalid_api_key"
    assert refused(await one.post(CALL, "x" * 40), 401)["code"] == "invalid_api_key"
    assert "write" in refused(await one.post(CALL, "talker"), 403)["message"]
    assert refused(await one.post(CALL, "reader"), 403)["type"] == "permission_error"
    async with one.client("x" * 40) as client:
        with pytest.raises(openai.AuthenticationError):
            await client.models.list()


async def test_body_over_20_mb_is_refused(one: ProxySite) -> None:
    large = json.dumps({**CALL, "padding": "a" * 20_000_000}).encode()
    assert refused(await one.post(large), 413)["code"] == "request_too_large"


async def test_one_call_more_than_the_settings_allow_gets_429(one: ProxySite) -> None:
    one.provider.script = Script(Hang())
    seen = len(one.provider.requests)
    held = asyncio.create_task(one.post({**CALL, "model": "memory/narrow"}))
    await one.provider.wait_for(seen + 1)
    second = await one.post({**CALL, "model": "memory/narrow"})
    assert refused(second, 429)["type"] == "rate_limit_error"
    assert second.headers["retry-after"] == "1"
    one.provider.drop()
    assert refused(await held, 503)["type"] == "server_error"
    assert (await one.post({**CALL, "model": "memory/narrow"})).status_code == 200


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 429, 500, 503])
async def test_errors_of_the_provider_pass_through_without_its_key(one: ProxySite, status: int) -> None:
    one.provider.script = Script(Refuse(status, "theirs", f"bad key {PROVIDER_KEY}", retry_after=7))
    answer = await one.post(CALL, headers={"X-Keepsaid-Conversation": f"refused {status}"})
    assert answer.status_code == status
    assert answer.json()["error"]["message"] == "bad key (key)"
    assert answer.headers["retry-after"] == "7"
    assert await one.recorded(f"refused {status}") == []


async def test_provider_that_is_away_gives_503_and_says_nothing_of_its_address(tmp_path: Path) -> None:
    async with proxy_site(tmp_path) as lost:
        url = lost.provider.url
        await lost.provider.__aexit__(None, None, None)
        answer = await lost.post(CALL)
        assert url not in answer.text
        assert refused(answer, 503)["code"] == "KS-MDL-NETWORK"
        assert answer.headers["retry-after"]
        await lost.provider.__aenter__()


async def test_redirect_of_a_provider_is_not_followed(tmp_path: Path) -> None:
    async with ModelServer() as elsewhere, proxy_site(tmp_path) as here:
        here.provider.script = Script(Refuse(307, "moved", elsewhere.url))
        refused(await here.post(CALL), 503)
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    "proxy",
    [
        {"base_url": "file:///etc/passwd", "model": "m"},
        {"base_url": "https://example.org/v1?x=1", "model": "m"},
        {"base_url": "https://a:b@c@example.org", "model": "m"},
        {"base_url": "https://example.org", "model": ""},
        {"base_url": "https://example.org", "model": "m", "memory": "all"},
        {"base_url": "https://example.org", "model": "m", "keys": ["nobody"]},
    ],
)
async def test_settings_that_name_no_provider_are_refused(proxy: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="proxies"):
        Config.model_validate({"openai": {"proxies": {"p": proxy}}})
