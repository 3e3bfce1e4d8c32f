"""The scripted model of `keepsaid models demo`: turns follow the script, and keepsaid's own requests take no step."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.unit.test_extractor import told

from keepsaid.adapters.models.choose import LazyChat
from keepsaid.adapters.models.extractor import ModelExtractor
from keepsaid.adapters.models.memory_calls import ModelEditor, ModelJudge, ModelSummariser
from keepsaid.app.models import try_model
from keepsaid.config import Config
from keepsaid.config.settings import ModelsConfig
from keepsaid.domain.learning import Pair, Ruling
from keepsaid.domain.prompt import Prompt, Record, Role
from keepsaid.domain.session import Passage
from keepsaid.ports.memory_store import EditRequest
from keepsaid.ports.model import ModelRequest, ToSummarise
from keepsaid.testing.builders import lane_of
from keepsaid.testing.model_demo import DemoScript, converse
from keepsaid.testing.model_script import Say
from keepsaid.testing.model_server import ModelServer

NAME = "openai/demo"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(DemoScript(Say("first"), Say("second"), default=converse), model="demo") as listening:
        yield listening


@pytest.fixture
async def chat(server: ModelServer) -> AsyncIterator[LazyChat]:
    made = LazyChat(NAME, ModelsConfig(base_url=server.url, api_key="none"))
    yield made
    await made.close()


async def said(chat: LazyChat, text: str, recalled: str = "") -> str:
    request = ModelRequest(Prompt("You are an assistant.", (), recalled, text), limit_s=60.0)
    return (await chat.answer(request, lambda _: None)).text


async def test_only_turns_take_steps_of_the_script(server: ModelServer, chat: LazyChat) -> None:
    config = Config(models=ModelsConfig(chat=NAME, base_url=server.url, api_key="none"))
    assert await try_model(config, NAME) > 0
    assert await said(chat, "hello") == "first"
    passage = Passage(lane_of(), 1, 5, (told(1, "I live in Porto", "Ann"), told(5, "hm", "Cid")))
    found = await ModelExtractor(chat, limit_s=60.0).extract(passage)
    assert [(one.subject, one.value, one.records) for one in found.statements] == [("Ann", "Porto", (1,))]
    nothing = await ModelExtractor(chat, limit_s=60.0).extract(Passage(lane_of(), 1, 5, (told(1, "hm"),)))
    assert nothing.statements == ()
    pair = Pair(1, 2, ("Ann lives in Porto", "Ann lives in Rome"), (1, 2))
    assert await ModelJudge(chat).judge([pair, pair]) == [Ruling.DIFFERENT, Ruling.DIFFERENT]
    given = ToSummarise((), (Record(Role.USER, "the lamp is broken", speaker="Ann"),), limit_s=60.0)
    assert "Ann: the lamp is broken" in (await ModelSummariser(chat).summarise(given)).sections.facts
    bulletin = await ModelEditor(chat).edit(EditRequest("Important:\n- The spare key is under the pot."))
    assert "The spare key is under the pot." in bulletin.text
    assert await said(chat, "hello") == "second"


async def test_without_a_script_it_repeats_what_it_was_given(server: ModelServer, chat: LazyChat) -> None:
    server.script = DemoScript(default=converse)
    assert await said(chat, "hello") == "You said: hello\nThe prompt contains no memory."
    block = "[Context from memory 1a]\n[Relevant to this message]\n[Fact] Ann: lives in Porto\n[End of data 1a]"
    shown = await said(chat, "where?", block)
    assert shown == "You said: where?\nThe prompt contains 1 memory:\n- [Fact] Ann: lives in Porto"


def test_a_file_may_give_the_steps_and_leave_the_default() -> None:
    text = '{"reactions": [{"kind": "say", "text": "hi"}]}'
    assert DemoScript.from_json(text, converse).left == 1
