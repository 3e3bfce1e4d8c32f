"""Echoes: the same sentence is recognised, and no other."""

from __future__ import annotations

import time

import pytest

from keepsaid.domain.forgetting import AGENT, echo_digests, sentence_digest, sentences

_BOAT = "My boat is called Wanda"


def echoed(forgotten: str, text: str, person: str = AGENT) -> bool:
    """Whether a text repeats a sentence of another."""
    buried = {sentence_digest(person, one) for one in sentences(forgotten)}
    return not buried.isdisjoint(echo_digests(person, text))


@pytest.mark.parametrize(
    "text",
    [
        "my boat is called wanda",
        "ok: my boat is called Wanda.",
        "Ok, noted, my boat is called Wanda, right?",
        "I have noted that my boat is called Wanda",
        'You said: "My boat is called Wanda". Nice!',
        "* My boat is called Wanda\n* nothing else",
        "Hello. My   boat is called WANDA!",
    ],
)
def test_the_same_sentence_is_recognised(text: str) -> None:
    assert echoed(_BOAT, text)


@pytest.mark.parametrize(
    "text",
    [
        "my boat is called Rosa",
        "a boat is called Wanda once",
        "Wanda called",
        "my boat",
        "",
        "my boat is called Wanda II",
    ],
)
def test_another_sentence_is_not(text: str) -> None:
    assert not echoed(_BOAT, text)


@pytest.mark.parametrize("text", ["ok", "Good morning", "how are you?", "yes please", "thank you very much", ":", ""])
def test_small_talk_is_never_forgotten(text: str) -> None:
    assert list(sentences(text)) == []


def test_a_sentence_is_of_one_person() -> None:
    [boat] = sentences(_BOAT)
    assert sentence_digest("ann", boat) not in echo_digests("bob", _BOAT)


def test_scripts_without_spaces_are_recognised() -> None:
    assert echoed("我的储物柜密码是七七四一", "好的，我的储物柜密码是七七四一。")
    assert echoed("Мой сейф открывается словом Ромашка", "хорошо: мой сейф открывается словом ромашка")


def test_abbreviations_end_no_sentence() -> None:
    assert not echoed("My dentist is Dr. Novak", "My dentist is Dr. Smith")
    assert echoed("My dentist is Dr. Novak", "noted: my dentist is Dr. Novak!")


@pytest.mark.parametrize("piece", ["a, ", "word ", "x: ", "é", '"', "a. ", ". "])
def test_the_time_it_takes_grows_with_the_length_and_no_faster(piece: str) -> None:
    def cost(count: int) -> float:
        began = time.thread_time()
        echo_digests(AGENT, piece * count)
        list(sentences(piece * count))
        return time.thread_time() - began

    cost(100)
    assert cost(80_000) < 12 * max(cost(20_000), 0.01)
