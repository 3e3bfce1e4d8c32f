"""Questions: asked by a tool, answered only by who was asked, where he was asked, in time, and by what fits."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.deaths import dying_at
from tests.unit.slot_cast import Scripted, Stage, asking, focus

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.message import ProviderMarks
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.slot import OnMismatch, SlotState, SlotTerms
from keepsaid.domain.turn import ModelAnswer
from keepsaid.interfaces.cli.why import explained
from keepsaid.ports.store import Store

DAY = asking("Which day?", "date_time")
LINE = '[Question answered: you asked "Which day?" (date_time); the answer reads as 2026-11-19]'


@pytest.fixture(params=["memory", "file"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A new, empty store."""
    kept = InMemoryOperations() if request.param == "memory" else await open_operations(tmp_path / "buffer.db")
    yield kept
    await kept.close()


async def asked(store: Store, terms: SlotTerms | None = None) -> Stage:
    """A stage on which Ann was asked for a day."""
    stage = Stage(store, terms or SlotTerms(), Scripted([DAY, ModelAnswer("Which day?", model="m")]))
    turn = await stage.says("book a table")
    [slot] = await stage.slots(turn)
    assert (slot.state, slot.person, slot.anchor) == ("open", "ann", f"reply:{turn.turn_id}")
    assert slot.expires_at - slot.opened_at == 600_000
    return stage


async def test_the_next_fitting_message_answers_it_and_the_model_is_told(store: Store) -> None:
    stage = await asked(store)
    turn = await stage.says("tomorrow please")
    [slot] = await stage.slots(turn)
    assert (slot.state, slot.value) == ("filled", "2026-11-19")
    assert slot.filled_by == f"message:{turn.messages[0].id}"
    assert stage.quoted == LINE
    assert turn.records[0].text == "tomorrow please"
    assert focus(turn) == ("slot", slot.anchor)
    said = " ".join(" ".join(explained(turn)).split())
    assert "focus" in said
    assert "Which day? (date_time), asked in" in said
    assert "answered: 2026-11-19" in said
    await stage.says("and the next day")
    assert stage.quoted == ""


async def test_why_tells_what_a_turn_asked_for(store: Store) -> None:
    stage = Stage(store, model=Scripted([DAY, ModelAnswer("Which day?", model="m")]))
    assert "Which day? (date_time)" in "\n".join(explained(await stage.says("book a table")))


@pytest.mark.parametrize(("mode", "state"), [(OnMismatch.CLEAR, "cleared"), (OnMismatch.KEEP, "open")])
async def test_another_message_is_left_alone_and_ends_the_question_or_not(
    store: Store, mode: OnMismatch, state: str
) -> None:
    stage = await asked(store, SlotTerms(on_mismatch=mode))
    turn = await stage.says("what is the weather?")
    [slot] = await stage.slots(turn)
    assert (slot.state, slot.value, stage.quoted) == (state, "", "")
    assert turn.records[0].text == "what is the weather?"
    await stage.says("tomorrow")
    assert ((await stage.slots(turn))[0].state, stage.quoted) == (
        ("filled", LINE) if mode is OnMismatch.KEEP else ("cleared", "")
    )


async def test_neither_another_person_nor_another_lane_nor_a_machine_touches_it(store: Store) -> None:
    stage = await asked(store)
    turn = await stage.says("tomorrow", who="Bob")
    await stage.says("tomorrow", topic="elsewhere")
    await stage.says("tomorrow", event="issues.opened")
    await stage.says("tomorrow", channel="hook")
    assert {request.prompt.quoted for request in stage.model.asked} == {""}
    [slot] = await stage.slots(turn)
    assert slot.state == "open"


async def test_an_answer_in_time_counts_however_late_it_is_read(store: Store) -> None:
    stage = await asked(store)
    await stage.clock.advance(599_999)
    await stage.hear("tomorrow")
    await stage.clock.advance(3_600_000)
    assert (await stage.slots(await stage.work()))[0].state == "filled"


async def test_after_its_time_it_is_expired(store: Store) -> None:
    stage = await asked(store)
    await stage.clock.advance(600_000)
    slot = (await stage.slots(await stage.says("tomorrow")))[0]
    assert (slot.state, slot.reason, stage.quoted) == ("expired", "no answer came in time", "")


async def test_what_was_said_before_the_question_is_no_answer_to_it(store: Store) -> None:
    stage = Stage(store, model=Scripted([DAY, ModelAnswer("Which day?", model="m")]))
    await stage.hear("book a table")
    await stage.clock.advance(5)
    (lease,) = await stage.flow.claim(stage.leases, 1)
    claimed = await stage.flow.open(lease)
    await stage.hear("tomorrow I am off")
    await stage.clock.advance(5)
    await stage.flow.answer(claimed)
    turn = await stage.work()
    assert (await stage.slots(turn))[0].state is SlotState.OPEN


@pytest.mark.parametrize(("target", "state"), [("other", "cleared"), ("question", "filled")])
async def test_a_reply_to_something_else_is_no_answer_and_one_to_the_question_is(
    store: Store, target: str, state: str
) -> None:
    stage = Stage(store, model=Scripted([ModelAnswer("hi", model="m"), DAY, ModelAnswer("Which day?", model="m")]))
    await stage.says("hello")
    await stage.delivered("other")
    await stage.says("book a table")
    await stage.delivered("question")
    turn = await stage.says("tomorrow", marks=ProviderMarks(reply_to=target))
    assert (await stage.slots(turn))[0].state == state


@pytest.mark.parametrize("point", ["tool.before", "tool.after", "commit.TurnCommit.before", "commit.TurnCommit.after"])
async def test_a_replayed_turn_opens_one_question(point: str) -> None:
    store = InMemoryOperations()
    stage = Stage(
        store, model=Scripted([DAY, ModelAnswer("Which day?", model="m"), ModelAnswer("Which day?", model="m")])
    )
    await stage.hear("book a table")
    with dying_at(point):
        await stage.work()
    stage.revive()
    await store.apply(VoidLeases("next", stage.clock.now_ms(), "died", ()))
    if point != "commit.TurnCommit.after":
        await stage.work()
    turn_id = await store.last_turn(None)
    turn = None if turn_id is None else await store.turn(turn_id)
    assert turn is not None
    assert [(slot.id, slot.state) for slot in await stage.slots(turn)] == [(turn.turn_id, "open")]


async def test_it_survives_a_restart(store: Store) -> None:
    stage = await asked(store)
    stage.revive()
    turn = await stage.says("tomorrow")
    assert ((await stage.slots(turn))[0].state, stage.quoted) == ("filled", LINE)


async def test_a_retry_is_told_the_same(store: Store) -> None:
    stage = await asked(store)
    await stage.hear("tomorrow")
    with dying_at("model.after"):
        await stage.work()
    stage.revive()
    await store.apply(VoidLeases("next", stage.clock.now_ms(), "died", ()))
    await stage.work()
    first, again = stage.model.asked[-2:]
    assert (first.prompt.system, first.prompt.parts) == (again.prompt.system, again.prompt.parts)
    assert again.prompt.quoted == LINE


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"question": "", "type": "text"}, "question must be"),
        ({"question": "x" * 501, "type": "text"}, "question must be"),
        ({"question": "?", "type": "colour"}, "type must be one of"),
        ({"question": "?", "type": "selection"}, "a selection needs"),
        ({"question": "?", "type": "selection", "options": ["a", "a"]}, "a selection needs"),
        ({"question": "?", "type": "text", "person": "Bob"}, "person must be one of Ann"),
    ],
)
async def test_a_bad_call_is_told_and_opens_nothing(arguments: dict[str, str], wrong: str) -> None:
    call = asking("?", "text").calls[0]
    bad = ModelAnswer("", (replace(call, arguments=json.dumps(arguments)),), model="m")
    stage = Stage(model=Scripted([bad, ModelAnswer("hm", model="m")]))
    turn = await stage.says("hello")
    assert wrong in turn.records[2].text
    assert list(await stage.slots(turn)) == []


async def test_of_several_calls_the_last_good_one_counts() -> None:
    colour = asking("Which colour?", "selection", options=["red", "green"])
    stage = Stage(model=Scripted([DAY, colour, asking("?", "nonsense"), ModelAnswer("so?", model="m")]))
    turn = await stage.says("hello")
    assert [slot.question.text for slot in await stage.slots(turn)] == ["Which colour?"]


async def test_in_a_group_whoever_is_named_is_asked() -> None:
    stage = Stage(model=Scripted([asking("How many?", "number", person="Ann"), ModelAnswer("How many?", model="m")]))
    await stage.hear("let us eat")
    await stage.hear("I am hungry", who="Bob")
    turn = await stage.work()
    assert [slot.person for slot in await stage.slots(turn)] == ["ann"]
