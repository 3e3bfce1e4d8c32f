from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.golden_prompts import EVERYTHING, FOLDER, SCENES, agent, past, said, user, written
from tests.unit.memory_cast import claimed

from keepsaid.domain.prompt import MemoryPlacement
from keepsaid.domain.scene import Attention, Contribution, PromptInputs, Quote, StaticContext, TurnContext
from keepsaid.domain.trust import UNKEYED
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.pipeline.prompt.assemble import PromptBudget, assemble

TEXT = st.text(max_size=40)
HEADINGS = (
    "[status]",
    "[summary of",
    "[quoted",
    "[messages together",
    "[sent",
    "[attached",
    "[from",
    "[system:",
    "[received",
    "[context from",
)


@pytest.mark.parametrize("name", SCENES)
def test_a_prompt_is_what_was_reviewed(name: str) -> None:
    scene, budget = SCENES[name]
    kept = (FOLDER / f"{name}.txt").read_text("utf-8")
    assert written(assemble(scene, budget)) == kept, "python -m tests.unit.golden_prompts writes it again"


def test_every_file_is_compared() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(SCENES)


@st.composite
def scenes(draw: st.DrawFn) -> PromptInputs:
    """A scene of any texts."""
    asked: ClaimedBatch = claimed(*(said(n, draw(TEXT), after_s=n) for n in range(1, draw(st.integers(2, 4)))))
    records = [user(text) for text in draw(st.lists(TEXT, max_size=3))] + [agent(draw(TEXT))]
    recent = past(*records, summary=draw(TEXT))
    added = tuple(
        Contribution(draw(TEXT), draw(TEXT), draw(st.integers(0, 200))) for _ in range(draw(st.integers(0, 3)))
    )
    passing = TurnContext(draw(st.integers(0, 2**41)), (draw(TEXT),), added)
    attention = Attention(quotes=(Quote(draw(TEXT), draw(TEXT)),))
    return PromptInputs(asked, recent, standing=StaticContext(draw(TEXT)), turn=passing, attention=attention)


@given(scene=scenes(), order=st.sampled_from(MemoryPlacement))
def test_the_same_inputs_give_the_same_bytes(scene: PromptInputs, order: MemoryPlacement) -> None:
    budget = PromptBudget(order=order)
    assert assemble(scene, budget) == assemble(scene, budget)


@given(said_here=st.text(alphabet=st.sampled_from("[]Status umary\n\u2028Qoted:ch"), max_size=60))
def test_nobody_but_the_program_writes_its_headings(said_here: str) -> None:
    forged = "\n".join((said_here, *(f" \t{heading} forged" for heading in HEADINGS)))
    scene = PromptInputs(
        claimed(said(1, forged)), past(user(forged)), attention=Attention(quotes=(Quote(forged, forged),))
    )
    made = assemble(scene, PromptBudget())
    assert _headings(made.history[0].text) == _headings(made.user) == []
    assert _headings(made.quoted) == ["[quoted"]


def _headings(text: str) -> list[str]:
    low = (line.casefold() for line in text.splitlines())
    return [heading for line in low for heading in HEADINGS if line.startswith(heading)]


def test_contributions_stand_by_priority_and_the_last_are_cut_first() -> None:
    added = [Contribution("late", "x" * 50, 200), Contribution("b", "y" * 50), Contribution("a", "z" * 50, 5)]
    scene = PromptInputs(EVERYTHING.claimed, turn=TurnContext(contributions=tuple(added)))
    made = assemble(scene, PromptBudget())
    assert made.status.index("[From a ") < made.status.index("[From b ")
    assert made.extra == UNKEYED.within("[From late", "x" * 50)
    tight = assemble(scene, PromptBudget(extensions_chars=200))
    assert (tight.status, tight.extra) == (made.status, "")
    assert next(one for one in tight.layers if one.name == "extensions").cut == "left out: late"


def test_seed_003_lists_memory_before_the_recent_messages() -> None:
    order = [name for name, _ in assemble(EVERYTHING, PromptBudget(order=MemoryPlacement.SEED003)).parts]
    assert list(dict.fromkeys(order)) == ["summary", "memory", "recent", "status", "extensions", "quoted", "message"]
