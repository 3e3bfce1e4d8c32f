"""Reference: which earlier message one answers, by the signs that people go by."""

from __future__ import annotations

import pytest

from keepsaid.text.references import REACH, WEIGHTS, Guess, MessageText, infer, scene_of

MINUTE = 60_000


def talk(*lines: str) -> list[MessageText]:
    """Lines `speaker: words`, a minute apart."""
    parts = (line.split(": ", 1) for line in lines)
    return [MessageText(f"m{n}", who.lower(), words, n * MINUTE, who) for n, (who, words) in enumerate(parts)]


def last_of(*lines: str) -> Guess | None:
    """What the last of these lines answers."""
    *history, new = talk(*lines)
    return infer(history, new)


def test_a_name_at_the_beginning_points_at_its_last_message() -> None:
    guess = last_of("Ann: the build is broken", "Bob: where is lunch?", "Cat: is it raining?", "Dan: Ann, since when?")
    assert guess is not None
    assert (guess.ref, guess.reason) == ("m0", "it turns to the speaker by name")
    assert 0 < guess.score <= 1


@pytest.mark.parametrize("call", ["@ann which one?", "ann: which one?", "Ann Lee, which one?", "hm, which one, Ann?"])
def test_a_name_is_known_however_it_is_written(call: str) -> None:
    history = [
        MessageText("m0", "u1", "I rebuilt the index", 0, "Ann Lee"),
        MessageText("m1", "u2", "the weather turns", MINUTE, "Bob"),
        MessageText("m2", "u3", "so it seems", 2 * MINUTE, "Cat"),
    ]
    guess = infer(history, MessageText("m3", "u4", call, 3 * MINUTE, "Dan"))
    assert guess is not None
    assert guess.ref == "m0"


def test_a_name_that_two_have_points_at_nobody() -> None:
    history = [MessageText("m0", "u1", "one", 0, "Ann Lee"), MessageText("m1", "u2", "two", 0, "Ann Ray")]
    assert scene_of(history, MessageText("m2", "u3", "Ann: which?", 0, "Cat")).new.to == ""
    assert scene_of(history, MessageText("m2", "u3", "@ann", 0, "Cat")).new.to == ""


def test_who_has_no_name_is_not_meant_by_signs() -> None:
    scene = scene_of([MessageText("m0", " ", "well", 0, " ")], MessageText("m1", "bob", "?? what", 0, "Bob"))
    assert scene.new.to == ""


def test_who_was_asked_by_name_answers_that() -> None:
    guess = last_of("Ann: Bob: did you push the branch?", "Cat: lovely day", "Dan: it is", "Bob: yes, an hour ago")
    assert guess is not None
    assert guess.ref == "m0"


def test_a_known_answer_counts_as_turning_to_its_speaker() -> None:
    asked = MessageText("m0", "ann", "the server is down", 0)
    replied = MessageText("m1", "bob", "which one is it?", MINUTE, answers="m0")
    scene = scene_of([asked, replied], MessageText("m2", "ann", "the second", 2 * MINUTE))
    assert [one.to for one in scene.before] == ["", "ann"]


def test_who_says_nothing_of_an_answer_turns_to_nobody() -> None:
    """Also where the new message has no ref yet."""
    scene = scene_of(
        [MessageText("", "ann", "well"), MessageText("", "bob", "so so")], MessageText("", "ann", "indeed")
    )
    assert [one.to for one in (*scene.before, scene.new)] == ["", "", ""]


def test_the_rest_of_a_thought_goes_on_with_its_beginning() -> None:
    guess = last_of("Ann: does anyone use zsh?", "Bob: the printer is jammed again", "Bob: and it beeps")
    assert guess is not None
    assert (guess.ref, guess.reason) == ("m1", "it goes on with the speaker's own words")


def test_a_greeting_and_question_of_somebody_new_start_something() -> None:
    talking = [
        f"{who}: {other}: so it is with number {n}" for n in range(6) for who, other in (("Ann", "Bob"), ("Bob", "Ann"))
    ]
    assert last_of(*talking, "Eve: hello everyone, how do I mount a USB stick when it does not show up?") is None


def test_the_first_message_answers_nothing() -> None:
    assert last_of("Ann: ok") is None


def test_what_is_out_of_reach_is_not_answered() -> None:
    lines = ["Ann: where is the manual?", *(f"Bob: {n}" for n in range(REACH)), "Cat: Ann: on the shelf"]
    guess = last_of(*lines)
    assert guess is None or guess.ref != "m0"


def test_words_in_common_decide_between_two_questions() -> None:
    guess = last_of("Ann: how do I burn an iso?", "Bob: why does my swap partition vanish?", "Cat: which iso is it?")
    assert guess is not None
    assert (guess.ref, guess.reason) == ("m0", "it was a question without an answer")


def test_every_sign_has_a_weight_that_counts() -> None:
    assert 0 not in WEIGHTS.values()
    assert all(-30 <= weight <= 30 for weight in WEIGHTS.values())
