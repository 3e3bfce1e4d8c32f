"""The scripted model by its other sides: bare HTTP, the JSON of a script, a thread, a process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from tests.waits import HANG_S

import keepsaid
from keepsaid.testing import model_script as ms
from keepsaid.testing.model_server import ModelServer, ThreadedModelServer

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
SOURCES = str(Path(next(iter(keepsaid.__path__))).parent)


async def raw_exchange(server: ModelServer, *pieces: bytes) -> bytes:
    """Send bytes piece by piece; all the bytes that come back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(server.url).port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(HANG_S):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def post(body: bytes, *headers: str) -> bytes:
    lines = ["POST /v1/chat/completions HTTP/1.1", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


ASK = b'{"messages":[{"role":"user","content":"hi"}]}'


class TestHttp:
    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            (b"{", "parse the JSON"),
            (b"\xff", "parse the JSON"),
            (b"[" * 100_000, "parse the JSON"),
            (b"[]", "must be an object"),
            (b'{"messages": []}', "messages"),
            (b'{"messages": ["hi"]}', "'messages' must be"),
            (b'{"messages": [{}], "tools": 1}', "'tools' must be"),
        ],
    )
    async def test_a_bad_body_is_refused_and_takes_no_reaction(self, body: bytes, problem: str) -> None:
        async with ModelServer(ms.Script(ms.Say("kept"))) as server, httpx2.AsyncClient() as http:
            answer = await http.post(f"{server.url}/chat/completions", content=body)
            good = await http.post(f"{server.url}/chat/completions", content=ASK)
        assert answer.status_code == 400
        assert problem in answer.json()["error"]["message"]
        assert server.requests[0].raw == body
        assert good.json()["choices"][0]["message"]["content"] == "kept"

    @pytest.mark.parametrize(
        ("sent", "status"),
        [
            (b"nonsense\r\n\r\n", 400),
            (b"GET /v1/models HTTP/2\r\n\r\n", 400),
            (b"GET /v1/models HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
            (b"GET / HTTP/1.1\r\nA: " + b"x" * 140_000, 431),
            (b"GET /elsewhere HTTP/1.1\r\nConnection: close\r\n\r\n", 404),
            (b"POST /v1/models HTTP/1.0\r\n\r\n", 404),
            (b"POST /__script HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]", 400),
        ],
    )
    async def test_bad_bytes(self, sent: bytes, status: int) -> None:
        async with ModelServer() as server:
            answer = await raw_exchange(server, sent)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.split(b" ")[1] == b"%d" % status
        assert json.loads(body)["error"]["message"]

    async def test_bytes_may_come_in_any_pieces(self) -> None:
        asked = post(ASK) + post(ASK, "Connection: close")
        async with ModelServer() as server:
            whole = await raw_exchange(server, asked)
            assert whole.count(b"You said: hi") == 2
            server._requests.clear()
            assert await raw_exchange(server, *(bytes([byte]) for byte in asked)) == whole

    async def test_expect_continue(self) -> None:
        async with ModelServer() as server:
            answer = await raw_exchange(server, post(ASK, "Expect: 100-continue", "Connection: close"))
        assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")

    async def test_a_client_that_leaves_in_the_middle(self) -> None:
        async with ModelServer() as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(server.url).port)
            writer.write(post(ASK)[:-5])
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        assert server.requests == []


class TestScript:
    def test_json(self) -> None:
        script = ms.Script(
            ms.Say("a", 0.5, 3, (1, 2)),
            ms.Calls((ms.Call("f", {"x": [1]}), ms.Call("g", "{"))),
            ms.RATE_LIMITED,
            ms.Hang(),
            ms.Stall("abc", 1),
            ms.Cut("abc", 1),
            ms.Garble("x"),
            default=ms.Empty(),
        )
        again = ms.Script.from_json(script.to_json())
        request = ms.ChatRequest.parse(1, {}, ASK)
        assert again.left == script.left == 7
        assert [again.react(request) for _ in range(8)] == [script.react(request) for _ in range(8)]

    @pytest.mark.parametrize(
        "text", ["", "[]", '{"reactions": [{"kind": "sing"}]}', '{"reactions": [{"kind": "say", "txt": ""}]}']
    )
    def test_json_of_something_else(self, text: str) -> None:
        with pytest.raises(ValueError, match="validation error"):
            ms.Script.from_json(text)

    def test_functions_have_no_json(self) -> None:
        assert ms.Script.from_json(ms.Script().to_json()).left == 0
        for script in (ms.Script(ms.echo), ms.Script(default=lambda _: ms.Empty())):
            with pytest.raises(ValueError, match="no JSON form"):
                script.to_json()


class TestThread:
    def test_a_synchronous_client(self) -> None:
        with (
            ThreadedModelServer(ms.Script(ms.Say("hi"))) as server,
            OpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
        ):
            answer = client.chat.completions.create(model="m", messages=HELLO)
            assert [request.messages for request in server.wait_for(1)] == [HELLO]
            server.script = server.script.then(ms.Hang())
            with pytest.raises(openai.APITimeoutError):
                client.chat.completions.create(model="m", messages=HELLO, timeout=httpx2.Timeout(HANG_S, read=0.05))
            server.wait_for(2)
        assert answer.choices[0].message.content == "hi"
        assert len(server.requests) == 2

    def test_a_port_in_use(self) -> None:
        with ThreadedModelServer() as server:
            port = httpx2.URL(server.url).port
            with pytest.raises(OSError, match="in use"), ThreadedModelServer(port=port or 0):
                pass

    def test_a_script_that_raises(self) -> None:
        def wrong(_: ms.ChatRequest) -> ms.Reaction:
            raise ValueError("a mistake in the script")

        with (
            pytest.raises(ValueError, match="a mistake in the script"),
            ThreadedModelServer(wrong) as server,
            OpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
            pytest.raises(openai.APIConnectionError),
        ):
            client.chat.completions.create(model="m", messages=HELLO)


async def test_as_a_process(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_bytes(ms.Script(ms.Say("from the file")).to_json())
    module = ("-m", "keepsaid.testing.model_server", "--port", "0", "--script", str(file))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", *module, stdout=-1, stderr=-1, env=os.environ | {"PYTHONPATH": SOURCES}
    )
    assert process.stdout is not None
    url = json.loads(await process.stdout.readline())["url"]
    admin = url.removesuffix("/v1")
    async with (
        httpx2.AsyncClient() as http,
        AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client,
    ):
        first = await client.chat.completions.create(model="m", messages=HELLO)
        assert first.choices[0].message.content == "from the file"
        replaced = await http.post(f"{admin}/__script", content=ms.Script(ms.BROKEN, ms.Hang()).to_json())
        assert replaced.json() == {"reactions": 2}
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="m", messages=HELLO)
        hanging = asyncio.create_task(client.chat.completions.create(model="m", messages=HELLO))
        seen = (await http.get(f"{admin}/__requests?wait_for=3")).json()["requests"]
        again = ms.ChatRequest.parse(1, seen[0]["headers"], b64decode(seen[0]["raw"]))
        assert [request["number"] for request in seen] == [1, 2, 3]
        assert again.messages == seen[0]["body"]["messages"] == HELLO
        process.send_signal(signal.SIGTERM)
        with pytest.raises(openai.APIConnectionError):
            await asyncio.wait_for(hanging, HANG_S)
    out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")
