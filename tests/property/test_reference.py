"""Reference holds for any talk: never outside the conversation, never the future, always the same."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from keepsaid.text.references import WEIGHTS, MessageText, infer, scene_of

SPEAKERS = st.sampled_from(["u1", "u2", "u3", "ann"])
NAMES = st.sampled_from(["", "Ann", "Bob", "Ann Lee", "Ödön", "@x", " "])
PIECES = st.sampled_from(
    ["Ann:", "@bob", "bob,", "hello", "why", "is", "it?", "thanks", "printer", "jam", "?", "", "\n", "ß", "x" * 2_000]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=8).map(" ".join), st.text(max_size=40))


@st.composite
def talks(draw: st.DrawFn) -> list[MessageText]:
    """A conversation in order; its clock may stand or go back."""
    rows = draw(st.lists(st.tuples(SPEAKERS, TEXTS, NAMES, st.integers(-(10**7), 10**13)), min_size=1, max_size=70))
    links = draw(st.lists(st.one_of(st.none(), st.integers(0, 80)), min_size=len(rows), max_size=len(rows)))
    return [
        MessageText(f"m{n}", who, text, at, name, None if link is None else f"m{link}")
        for n, ((who, text, name, at), link) in enumerate(zip(rows, links, strict=True))
    ]


@given(talks())
def test_a_guess_points_at_something_said_before(talk: list[MessageText]) -> None:
    *history, new = talk
    guess = infer(history, new)
    assert guess is None or guess.ref in {one.ref for one in history}
    assert guess is None or 0 <= guess.score <= 1


@given(talks())
def test_the_same_talk_gives_the_same_guess(talk: list[MessageText]) -> None:
    *history, new = talk
    assert infer(history, new) == infer(tuple(history), new)


@given(talks())
def test_what_stands_further_back_than_reach_changes_nothing(talk: list[MessageText]) -> None:
    *history, new = talk
    assert infer(history, new) == infer(history[-50:], new)


@given(talks())
def test_whom_a_message_turns_to_is_somebody_else_in_the_conversation(talk: list[MessageText]) -> None:
    *history, new = talk
    scene = scene_of(history, new)
    for one in (*scene.before, scene.new):
        assert one.to != one.speaker
        assert one.to in {"", *(said.speaker for said in talk)}


def test_every_weight_belongs_to_a_sign_that_can_hold() -> None:
    """A misspelt sign would count nothing, silently."""
    chance, seen = Random(7), set[str]()
    words = ("why is the printer jammed?", "yes thanks", "hello, why?", "jam", "so bob says it is", "the printer, Ann")
    people = ("Ann", "Bob", "Cat", "Dan")
    for round_ in range(600):
        talk = []
        for n in range(chance.choice((3, 4, 5, 60))):
            who, call = chance.choice(people), chance.choice(("", "", *(f"{name}: " for name in people)))
            text = call + " and ".join(chance.choices(words, k=chance.choice((1, 1, 9))))
            talk.append(MessageText(f"m{n}", who, text, n * round_ * 2_000, who))
        scene = scene_of(talk[:-1], MessageText("new", chance.choice((*people, "Eve")), talk[-1].text, talk[-1].at))
        seen.update(*(scene.signs(n) for n in range(len(scene.before))), scene.start())
    assert WEIGHTS.keys() <= seen | {"start.again"}
