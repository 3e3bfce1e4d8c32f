"""The OpenAI endpoint when the program is killed while an answer is streamed: the same call gets the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from tests.acceptance.program import Program

from keepsaid.testing.model_script import ChatRequest, Reaction, Say, Stall
from keepsaid.testing.model_server import ThreadedModelServer

TOKEN = "k" * 40
CHAT: list[dict[str, Any]] = [{"role": "user", "content": "Which sail is torn?"}]


def stalling_once(request: ChatRequest) -> Reaction:
    """A model that hangs in the middle of its first answer."""
    answer = "The foresail is torn, and the mizzen too."
    return Stall(answer, 12) if request.number == 1 else Say(answer)


def client_of(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0)


def test_a_stream_that_a_kill_breaks_off_is_answered_by_the_same_call(tmp_path: Path) -> None:
    with ThreadedModelServer(stalling_once) as model:
        program = Program(tmp_path)
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "none"}
        program.configure(json.dumps({"models": models, "keys": {"app": {"token": TOKEN}}}))
        with program.serving() as running, client_of(running.url) as client:
            begin: Any = client.chat.completions.create
            stream = begin(model="keepsaid", messages=CHAT, stream=True)
            pieces = (chunk.choices[0].delta.content or "" for chunk in stream)
            assert next(piece for piece in pieces if piece)
            running.process.kill()
            running.process.wait()
            with pytest.raises((openai.APIError, httpx2.HTTPError)):
                list(pieces)
        with program.serving() as running, client_of(running.url) as client:
            create: Any = client.chat.completions.create
            answers = [create(model="keepsaid", messages=CHAT).choices[0].message.content for _ in range(2)]
            chunks = list(create(model="keepsaid", messages=CHAT, stream=True))
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert {*answers, streamed} == {"The foresail is torn, and the mizzen too."}
        assert len(model.requests) == 2
        assert "1 message" in program.run("status").out or program.run("inbox", "ls").out.count("Which sail") == 1
