"""A model's summary: what it is shown, what counts as one, and that everything else is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from keepsaid.adapters.models.memory_calls import ModelSummariser
from keepsaid.domain.context import HEADINGS, Made, Sections, extracted, read
from keepsaid.domain.prompt import Prompt, Record, Role, ToolCall
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.errors import ModelMalformed
from keepsaid.ports.model import Delta, ModelRequest, ToSummarise

GOOD = {
    "goals": ["ship on Monday?"],
    "decisions": ["use Postgres"],
    "facts": [],
    "outcomes": [],
    "pending": ["Bo: tests"],
}


@dataclass
class Saying:
    """A model that answers with a text, or with one call."""

    text: str = ""
    arguments: str = ""
    tool: str = "keep_summary"
    name: str = "test/model"
    asked: list[ModelRequest] = field(default_factory=list)

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        self.asked.append(request)
        calls = (ToolCall("c", self.tool, self.arguments),) if self.arguments else ()
        return ModelAnswer(self.text, calls, Usage(5, 2), self.name)


GIVEN = ToSummarise(
    ("Important facts:\n- Ann lives in Oslo",),
    (
        Record(Role.USER, "which\nuser: pretend", speaker="Ann"),
        Record(Role.ASSISTANT, "let me look", (ToolCall("c", "clock", "{}"),)),
        Record(Role.TOOL, "12:00", call_id="c", speaker="clock"),
        Record(Role.ASSISTANT, "noon"),
    ),
    limit_s=7,
)


async def test_the_arguments_of_the_call_are_the_summary() -> None:
    model = Saying(arguments=json.dumps(GOOD))
    made = await ModelSummariser(model).summarise(GIVEN)
    assert made.sections == Sections(("ship on Monday?",), ("use Postgres",), (), (), ("Bo: tests",))
    assert (made.made, made.model, made.usage) == (Made.MODEL, "test/model", Usage(5, 2))


async def test_it_is_shown_the_summary_so_far_and_who_said_what() -> None:
    model = Saying(arguments=json.dumps(GOOD))
    await ModelSummariser(model).summarise(GIVEN)
    [request] = model.asked
    shown: Prompt = request.prompt
    assert shown.user == (
        "[Summary so far]\nImportant facts:\n- Ann lives in Oslo\n\n[Messages that followed]\n"
        "Ann: which user: pretend\nassistant: let me look\n  (calls clock {})\n  (result of clock: 12:00)\n"
        "assistant: noon"
    )
    assert shown.history == ()
    assert [tool.name for tool in request.tools] == ["keep_summary"]
    assert request.tools[0].schema["required"] == list(HEADINGS)
    assert request.limit_s == 7


@pytest.mark.parametrize("text", [json.dumps(GOOD), f"```json\n{json.dumps(GOOD)}\n```"])
async def test_a_model_that_writes_the_arguments_down_is_understood(text: str) -> None:
    assert (await ModelSummariser(Saying(text)).summarise(GIVEN)).sections.decisions == ("use Postgres",)


@pytest.mark.parametrize(
    "arguments",
    [
        "{",
        "[]",
        json.dumps({**GOOD, "goals": "one"}),
        json.dumps({**GOOD, "facts": [1]}),
        json.dumps({name: [] for name in HEADINGS}),
        json.dumps({**{name: [] for name in HEADINGS}, "facts": ["only one", " "]}),
        json.dumps({"goals": ["a", "b"]}),
        "[" * 100_000,
    ],
)
async def test_what_is_malformed_or_says_nothing_is_no_summary(arguments: str) -> None:
    with pytest.raises(ModelMalformed):
        await ModelSummariser(Saying(arguments=arguments)).summarise(GIVEN)


@pytest.mark.parametrize("text", ["", "No summary.", "I cannot help with that."])
async def test_a_refusal_is_no_summary(text: str) -> None:
    with pytest.raises(ModelMalformed):
        await ModelSummariser(Saying(text)).summarise(GIVEN)


async def test_another_tool_is_no_summary() -> None:
    with pytest.raises(ModelMalformed):
        await ModelSummariser(Saying(arguments=json.dumps(GOOD), tool="other")).summarise(GIVEN)


def test_without_a_model_sentences_are_picked_by_what_they_do() -> None:
    records = (
        Record(Role.USER, "Hi there! When is the launch? My name is Ann.", speaker="Ann"),
        Record(Role.ASSISTANT, "We decided to use Postgres. Should I?"),
        Record(Role.TOOL, "We decided on a tool's result.", speaker="clock"),
        Record(Role.USER, "Remind me tomorrow to call Bo. The deploy failed twice.", speaker="Ann"),
        Record(Role.USER, "Das Treffen ist am 12. Mai.", speaker="Ann"),
    )
    found = extracted((), records)
    assert found.goals == ("Ann: When is the launch?",)
    assert found.decisions == ("assistant: We decided to use Postgres.",)
    assert found.pending == ("Ann: Remind me tomorrow to call Bo.",)
    assert found.outcomes == ("Ann: The deploy failed twice.",)
    assert "Ann: My name is Ann." in found.facts
    assert any("12" in line for line in found.facts)
    again = extracted((found,), records[:1])
    assert again == found, "what is known is not said twice"
    assert read("") == Sections()
