"""The stable prefix: what a provider was sent before, it is sent again byte for byte, up to the recent messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.golden_prompts import EVERYTHING, past, user

from keepsaid.adapters.models.choose import LazyChat
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.memory import GLOBAL, Kind, NewMemory
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.prompt import Json, PrefixMark, marks_of, repeated
from keepsaid.domain.scene import PromptInputs
from keepsaid.domain.views import Overview
from keepsaid.pipeline.prompt.assemble import PromptBudget, assemble
from keepsaid.pipeline.prompt.attention import MEMORY, STATUS, SUMMARY
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer

TURNS, SIDE = 100, 4
ANN = Origin("http", "default", "room", "ann", "Ann", direct=True, trust=Trust.KNOWN)
DEPLOYS = {"rules": [{"name": "deploys", "match": {"event": "deploy"}, "action": "spawn", "task": "look at it"}]}


def text_of(message: Json) -> str:
    """What one message of a request says."""
    content = message["content"] if isinstance(message, dict) else None
    return content if isinstance(content, str) else json.dumps(content)


def until_status(messages: Sequence[Json]) -> bytes:
    """The bytes of a request up to its status layer, as they are sent."""
    place = next(n for n, one in enumerate(messages) if text_of(one).startswith(STATUS))
    return json.dumps(list(messages[:place]), ensure_ascii=False).encode().removesuffix(b"]")


def summary_of(messages: Sequence[Json]) -> str:
    """What stands for the older messages in a request."""
    return next((text_of(one) for one in messages if text_of(one).startswith(SUMMARY)), "")


async def ask(instance: Instance, text: str) -> None:
    """Have one message answered."""
    received = await instance.receive(Inbound(ANN, Content(text.encode(), text)))
    with instance.hub.listening(received.id) as queue:
        while (await queue.get()).kind != "settled":
            pass


async def beside(instance: Instance, n: int) -> None:
    """What happens between two turns: something is learned, and a rule spawns work."""
    text = f"on day {n} the harbour opens at {n % 12} o'clock"
    fact = NewMemory(f"fact:{n}", Kind.FACT, text, GLOBAL, Trust.OWNER, said_at=n + 1)
    await instance.memories.keep([fact], fact.said_at)
    origin = replace(ANN, conversation=f"hooks-{n}", sender="ci", direct=False)
    received = await instance.receive(Inbound(origin, Content(b"{}", f"deploy {n}", "deploy")))
    with instance.hub.listening(received.id) as queue:
        while (await queue.get()).kind != "settled":
            pass


async def test_a_hundred_turns_repeat_their_prefix_while_memory_is_written_and_work_is_spawned(tmp_path: Path) -> None:
    models = {"chat": "openai/scripted", "api_key": "key"}
    async with ModelServer(Script(default=Say("noted, the harbour"))) as server:
        config = Config(
            models={**models, "base_url": server.url}, buffer={"window_ms": 0}, routes=DEPLOYS, agent="main"
        )
        chat = LazyChat("openai/scripted", config.models)
        async with opened(Home.at(tmp_path), config, chat) as instance:
            await instance.start()
            for n in range(TURNS):
                await ask(instance, f"when does the harbour open on day {n - n % SIDE}?")
                if n % SIDE == 0:
                    await beside(instance, n)
            overview: Overview = await instance.operations.overview()
        await chat.close()
        asked = (request.messages for request in server.requests)
        sent = [messages for messages in asked if any(text_of(one).startswith(STATUS) for one in messages)]
    assert (len(sent), sum(overview.tasks.values())) == (TURNS, TURNS // SIDE)
    recalled = {text_of(one[-2]) for one in sent if text_of(one[-2]).startswith(MEMORY)}
    assert len(recalled) > TURNS // 20, "different memories were recalled, below what is repeated"
    broken = [n for n, (a, b) in enumerate(pairwise(sent)) if not until_status(b).startswith(until_status(a))]
    swapped = [n for n, (a, b) in enumerate(pairwise(sent)) if summary_of(a) != summary_of(b)]
    assert broken == swapped, "only a new summary rewrites what was sent before"
    assert len(swapped) <= TURNS // 10


def marked(scene: PromptInputs, tools: str = "tool") -> tuple[PrefixMark, ...]:
    return marks_of(assemble(scene, PromptBudget()), tools)


LONGER = replace(EVERYTHING, tail=past(*EVERYTHING.tail.recent.records, user("and now?"), summary="old"))
SCENE = replace(EVERYTHING, tail=past(*EVERYTHING.tail.recent.records, summary="old"))


def test_what_is_appended_repeats_everything_before() -> None:
    found = repeated(marked(SCENE), marked(LONGER))
    assert (found.broken, found.stable_share) == ("", 1.0)
    assert found.bytes == found.stable < found.whole
    assert repeated(marked(SCENE), marked(SCENE)).share == 1.0


STANDING = SCENE.standing
CHANGES = {
    "tools": (SCENE, "other tool"),
    "identity": (replace(SCENE, standing=replace(STANDING, identity="# SOUL.md\nOther")), "tool"),
    "personality": (
        replace(SCENE, standing=replace(STANDING, personality=replace(STANDING.personality, text="x"))),
        "tool",
    ),
    "skills": (replace(SCENE, standing=replace(STANDING, skills=type(STANDING.skills)())), "tool"),
    "workers": (replace(SCENE, standing=replace(STANDING, capabilities=())), "tool"),
    "bulletin": (replace(SCENE, standing=replace(STANDING, bulletin="News.")), "tool"),
    "summary": (replace(SCENE, tail=past(*LONGER.tail.recent.records, summary="new")), "tool"),
    "session_summary": (replace(SCENE, standing=replace(STANDING, session_summary="Elsewhere.")), "tool"),
    "recent": (replace(SCENE, tail=past(*SCENE.tail.recent.records[3:], summary="old")), "tool"),
}


@pytest.mark.parametrize("layer", CHANGES)
def test_what_broke_a_prefix_is_named(layer: str) -> None:
    scene, tools = CHANGES[layer]
    for before, after in ((marked(SCENE), marked(scene, tools)), (marked(scene, tools), marked(SCENE))):
        found = repeated(before, after)
        assert found.broken == layer
        assert found.stable_share < 1


@given(texts=st.lists(st.text(max_size=8), max_size=12), others=st.lists(st.text(max_size=8), max_size=12))
def test_marks_tell_as_much_as_the_texts(texts: list[str], others: list[str]) -> None:
    one, two = (replace(SCENE, tail=past(*map(user, said))) for said in (texts, others))
    same = next(
        (n for n, (a, b) in enumerate(zip(texts, others, strict=False)) if a != b), min(len(texts), len(others))
    )
    found = repeated(marked(one), marked(two))
    assert (found.broken == "") == (same == len(texts))


@given(known=st.integers(0, 700), added=st.integers(1, 100), changed=st.none() | st.integers(0, 699))
def test_a_long_past_that_grew_is_repeated_whole_with_few_marks(known: int, added: int, changed: int | None) -> None:
    said = [f"record {n}" for n in range(known + added)]
    before = marked(replace(SCENE, tail=past(*map(user, said[:known]))))
    differs = changed is not None and changed < known
    if differs and changed is not None:
        said[changed] = "another"
    found = repeated(before, marked(replace(SCENE, tail=past(*map(user, said)))))
    assert len(before) < 200
    assert found.broken == ("recent" if differs else "")
    assert (found.stable_share < 1) == differs
