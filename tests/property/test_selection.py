"""What is shown of what was recalled: the gate, the de-duplications, the rule of re-injection and the budget."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.memory_cast import memory

from keepsaid.domain.memory import Hit, Kind
from keepsaid.domain.receipt import Cause, Place
from keepsaid.memory.gates import ENOUGH, InjectionSettings, PromptShown, Relevance, Selection, Visible, select_relevant
from keepsaid.text.tokens import estimate_tokens
from keepsaid.text.words import DocumentFrequencies

WORDS = ["ship", "stern", "anchor", "harbour", "gull", "rope"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(lambda words: f"{' '.join(words)} kept")
IDS = st.integers(1, 12)


@dataclass(frozen=True)
class Case:
    """Candidates, what the prompt shows, which say the same, and the limits."""

    pinned: list[Hit]
    recalled: list[Hit]
    shown: PromptShown
    alike: set[tuple[int, int]]
    settings: InjectionSettings
    said: str


@st.composite
def hits(draw: st.DrawFn, leg: str) -> list[Hit]:
    found = []
    for rank, id_ in enumerate(draw(st.lists(IDS, max_size=12)), 1):
        kind = draw(st.sampled_from([Kind.EPISODE, Kind.FACT]))
        state = draw(st.sampled_from(["active", "active", "active", "superseded"]))
        near = draw(st.floats(0, 0.6))
        one = memory(id_, draw(TEXTS), kind=kind, state=state)
        found.append(Hit(one, leg, rank, 1.0, places=(Place("vector", rank, near),)))
    return found


CASES = st.builds(
    Case,
    hits("pinned"),
    hits("text"),
    st.builds(
        PromptShown, standing=st.frozensets(IDS), lately=st.frozensets(IDS), wrong=st.frozensets(IDS, max_size=2)
    ),
    st.sets(st.tuples(IDS, IDS).filter(lambda pair: pair[0] < pair[1])),
    st.builds(InjectionSettings, items_max=st.integers(0, 8), tokens_max=st.integers(0, 200)),
    st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
)


def rarity(said: str) -> DocumentFrequencies:
    return DocumentFrequencies(500, dict.fromkeys(said.split(), 3))


def selected(case: Case) -> Selection:
    relevance = Relevance(case.said, rarity(case.said))
    selection = Selection(Visible(case.shown, (), case.said), relevance, case.settings)
    passing = selection.sift(case.pinned, case.recalled)
    selection.choose({pair for pair in case.alike if {*pair} <= {*passing, *case.shown.standing}})
    return selection


@given(CASES)
def test_every_candidate_has_one_verdict_in_order(case: Case) -> None:
    candidates = selected(case).candidates
    assert [one.hit for one in candidates] == [*case.pinned, *case.recalled]
    assert all(one.reason for one in candidates)
    assert all(one.chosen is (one.cause in (Cause.PINNED, Cause.RELEVANT)) for one in candidates)


@given(CASES)
def test_the_budget_is_kept_and_pinned_memories_come_first(case: Case) -> None:
    selection = selected(case)
    chosen = [one for one in selection.candidates if one.chosen]
    lines = [line for line in selection.block.splitlines() if line and not line.endswith(("context]", "message]"))]
    assert len(lines) == len(chosen) <= case.settings.items_max
    assert estimate_tokens(selection.block) <= case.settings.tokens_max
    causes = [one.cause for one in chosen]
    assert causes == sorted(causes, key=[Cause.PINNED, Cause.RELEVANT].index)


@given(CASES)
def test_nothing_is_shown_twice_or_against_a_word(case: Case) -> None:
    """Not the same memory, not the same words, nothing alike, nothing that stands there, was wrong or came lately."""
    chosen = [one.hit.memory for one in selected(case).candidates if one.chosen]
    ids = {one.id for one in chosen}
    assert len(ids) == len(chosen) == len({one.text for one in chosen})
    assert not ids & (case.shown.standing | case.shown.lately | case.shown.wrong)
    shown = ids | case.shown.standing
    assert not any(one in ids and other in shown for pair in case.alike for one, other in (pair, pair[::-1]))
    assert all(one.state == "active" for one in chosen)


@given(CASES)
def test_a_memory_that_is_not_about_the_message_is_shown_only_when_it_is_pinned(case: Case) -> None:
    relevance = Relevance(case.said, rarity(case.said))
    evidence = [relevance.weigh(hit) for hit in case.recalled]
    relevant = {case.recalled[n].memory.id for n in select_relevant(case.recalled, evidence)}
    best = max((one.total for one in evidence), default=0.0)
    for one in selected(case).candidates:
        if one.cause is Cause.RELEVANT:
            assert one.hit.memory.id in relevant
            assert relevance.weigh(one.hit).total > 0
            assert best >= ENOUGH


@given(CASES)
def test_the_gate_knows_no_ranks(case: Case) -> None:
    """In whatever order recall found them, the same ones fall to it."""

    def fallen(recalled: list[Hit]) -> set[int]:
        found = selected(Case([], recalled, PromptShown(), set(), InjectionSettings(), case.said)).candidates
        return {one.hit.memory.id for one in found if one.cause is Cause.GATE}

    once = list({hit.memory.id: hit for hit in case.recalled}.values())
    assert fallen(once) == fallen(once[::-1])


@given(CASES, st.sampled_from(WORDS))
def test_a_word_more_in_common_never_speaks_against_a_memory(case: Case, word: str) -> None:
    relevance = Relevance(f"{case.said} {word}", rarity(f"{case.said} {word}"))
    for hit in case.recalled:
        more = Hit(memory(hit.memory.id, f"{hit.memory.text} {word}", kind=hit.memory.new.kind), hit.leg, 1, 1.0)
        less = Hit(memory(hit.memory.id, hit.memory.text, kind=hit.memory.new.kind), hit.leg, 1, 1.0)
        assert relevance.weigh(more).total >= relevance.weigh(less).total


@given(CASES)
def test_what_the_budget_left_out_was_not_given(case: Case) -> None:
    """Only what stands in the block counts as shown, so that the rest may come in the next turn (seed 001)."""
    selection = selected(case)
    assert all(not one.chosen for one in selection.candidates if one.cause is Cause.BUDGET)
    assert selection.block.count("\n[") <= len([one for one in selection.candidates if one.chosen]) + 2
