"""A memory proxy across a real death of the process, in the middle of a stream."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx2
import openai
import pytest
from tests.acceptance.program import WITHIN_S, Program, Running

from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ThreadedModelServer

KEY = "k" * 40
CONFIG = """
models: {{chat: none}}
keys:
  ann: {{token: {key}}}
openai:
  proxies:
    main: {{base_url: "{url}", model: scripted}}
"""


def client_of(running: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key=KEY, max_retries=0, timeout=WITHIN_S)


def streamed(client: openai.OpenAI) -> openai.Stream[openai.types.chat.ChatCompletionChunk]:
    return client.chat.completions.create(
        model="memory/main",
        messages=[{"role": "user", "content": "Tell me a story"}],
        stream=True,
        extra_headers={"X-Keepsaid-Conversation": "stories"},
    )


def test_killed_stream_is_recorded_once_by_the_same_call_again(tmp_path: Path) -> None:
    script = Script(Say("Once upon a time", chunk=4, rest_after_s=3_600), Say("Once there was a cat."))
    with ThreadedModelServer(script) as provider:
        program = Program(tmp_path / "home")
        program.configure(CONFIG.format(key=KEY, url=provider.url))
        with program.serving() as first, client_of(first) as client:
            stream = streamed(client)
            while not next(stream).choices[0].delta.content:
                pass
            first.process.send_signal(signal.SIGKILL)
            with pytest.raises((openai.APIError, httpx2.HTTPError)):
                for _ in stream:
                    pass
            assert first.process.wait(WITHIN_S) == -signal.SIGKILL
        with program.serving() as second, client_of(second) as client:
            told = "".join(chunk.choices[0].delta.content or "" for chunk in streamed(client))
            assert told == "Once there was a cat."
            found = httpx2.get(
                f"{second.url}/v1/lanes",
                params={"conversation": "stories"},
                headers={"Authorization": f"Bearer {KEY}"},
                timeout=WITHIN_S,
                trust_env=False,
            ).json()
    said = [(one["role"], one["text"]) for one in found["messages"]]
    assert said == [("user", "Tell me a story"), ("assistant", "Once there was a cat.")]
