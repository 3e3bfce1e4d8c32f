"""Answers that end at the limit of their tokens, by the real client: they say so, whole, streamed and fetched later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.unit.test_openai_agent import agent, assistant, user

from keepsaid.testing.model_script import Say

CUT = Say("The first half of", finish="length")


def sent_limit(raw: bytes) -> int:
    """The limit that a provider was sent."""
    body = json.loads(raw)
    return int(body.get("max_completion_tokens") or body["max_tokens"])


async def test_chat_completion_that_is_cut_says_so(tmp_path: Path) -> None:
    async with agent(tmp_path, lambda _: CUT) as here, here.client() as client:
        create: Any = client.chat.completions.create
        asked = [user("Tell a story")]
        for _ in range(2):
            answer = await create(model="keepsaid", messages=asked, max_completion_tokens=50)
            assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("length", CUT.text)
        stream = await create(model="keepsaid", messages=asked, max_completion_tokens=50, stream=True)
        assert [chunk.choices[0].finish_reason async for chunk in stream][-1] == "length"
        assert sent_limit(here.model.requests[0].raw) == 50
        assert len(here.model.requests) == 1


async def test_response_that_is_cut_is_incomplete(tmp_path: Path) -> None:
    async with agent(tmp_path, lambda _: CUT) as here, here.client() as client:
        first = await client.responses.create(model="keepsaid", input="Tell a story", max_output_tokens=40)
        found = await client.responses.retrieve(first.id)
        events = [
            one async for one in await client.responses.create(model="keepsaid", input="Another one", stream=True)
        ]
        last = events[-1]
        assert last.type == "response.incomplete"
        for response in (first, found, last.response):
            assert response.status == "incomplete"
            assert response.incomplete_details is not None
            assert response.incomplete_details.reason == "max_output_tokens"
            assert response.output_text == CUT.text
        assert sent_limit(here.model.requests[0].raw) == 40


async def test_limit_of_a_client_holds_for_its_turn_and_raises_no_limit_of_the_settings(tmp_path: Path) -> None:
    limits: list[tuple[dict[str, int], int]]
    limits = [({}, 4_096), ({"max_tokens": 1_000_000}, 4_096), ({"max_tokens": 3}, 16)]
    async with agent(tmp_path) as here, here.client() as client:
        create: Any = client.chat.completions.with_raw_response.create
        history = [user("one")]
        for n, (limit, sent) in enumerate(limits):
            raw = await create(model="keepsaid", messages=history, **limit)
            assert "x-keepsaid-ignored" not in raw.headers
            assert sent_limit(here.model.requests[n].raw) == sent
            history += [assistant(f"answer {n + 1}"), user("more")]
        for wrong in (0, -5, True, "many", 1.5):
            with pytest.raises(openai.BadRequestError, match="max_tokens"):
                await create(model="keepsaid", messages=history, max_tokens=wrong)


async def test_names_of_any_text_stand_in_headers(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        create: Any = client.responses.with_raw_response.create
        raw = await create(
            model="keepsaid", input="one", conversation="Räume\r\nX-Evil: 1", extra_body={" ": 1, "a\n": 2}
        )
        assert raw.headers["x-keepsaid-lane"].endswith("R%C3%A4ume%0D%0AX-Evil: 1")
        assert raw.headers["x-keepsaid-ignored"] == "%20,%20a%0A"


async def test_answer_names_what_recall_went_without(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        create: Any = client.chat.completions.with_raw_response.create
        whole = await create(model="keepsaid", messages=[user("Which sail is torn?")])
        assert whole.headers["x-keepsaid-degraded"] == "vector: no embedder"
        cut = await create(model="keepsaid", messages=[user("Which sail is torn? " * 300)])
        assert "4,000" in cut.headers["x-keepsaid-degraded"]


async def test_instructions_of_clients_are_left_out_if_the_settings_say_so(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text("openai: {client_instructions: ignore}\n", "utf-8")
    async with agent(tmp_path) as here, here.client() as client:
        create: Any = client.chat.completions.with_raw_response.create
        said = [{"role": "system", "content": "Answer in verse."}, user("Which sail is torn?")]
        answer = await create(model="keepsaid", messages=said)
        assert answer.headers["x-keepsaid-ignored"] == "instructions"
        assert "in verse" not in json.dumps(here.model.requests[-1].messages)
