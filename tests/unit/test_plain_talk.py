"""What states nothing costs no call of a model, and nothing that may state something is passed over."""

from __future__ import annotations

import pytest
from tests.unit.collection_cast import Scene

from keepsaid.testing.builders import said
from keepsaid.text.topics import only_asks


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("who is my dentist?", True),
        ("Which city do I live in?", True),
        ("what's on my list today?", True),
        ("what should I cook, now that my mother is vegan?", False),
        ("what do I do since I moved?", False),
        ("where does Ada live?", False),
        ("what is the code of room 12?", False),
        ("I moved to Porto. where is the tram?", False),
        ("can you call my dentist?", False),
        ("my dentist is Marta Reis", False),
        ("wo wohnt meine Schwester?", False),
    ],
)
def test_only_a_plain_question_asks_and_states_nothing(text: str, plain: bool) -> None:
    assert only_asks(text) is plain


@pytest.mark.parametrize(
    ("texts", "answer", "calls"),
    [
        (("good morning", "who is my dentist?", "thanks!"), "fine", 0),
        (("good morning", "who is my dentist?", "it is Marta Reis"), "fine", 1),
        (("good morning", "ok", "yes"), "Shall I book the tram?", 1),
        (("good morning", "guten Morgen zusammen", "thanks!"), "fine", 1),
    ],
)
async def test_small_talk_and_questions_are_cleared_without_a_call(
    texts: tuple[str, ...], answer: str, calls: int
) -> None:
    scene = Scene()
    for text in texts:
        await scene.say(said(text), answer)
    assert await scene.collector.tick() == 1
    assert (len(scene.extractor.asked), (await scene.session()).processed_until) == (calls, 6)
