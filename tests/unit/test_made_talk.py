from __future__ import annotations

import numpy as np

from keepsaid.text.languages import STOPWORDS
from keepsaid.text.words import root, spelled
from keepsaid_testkit.made_talk import DIMENSION, MadeTalk


def test_the_same_numbers_give_the_same_talk() -> None:
    one, other = MadeTalk(), MadeTalk()
    assert one.texts(40, 20) == other.texts(40, 20)
    assert one.texts(40, 20) != one.texts(60, 20)
    assert list(one.questions(5)) == list(other.questions(5))
    assert np.array_equal(one.vectors(40, 20), other.vectors(40, 20))
    assert np.allclose(np.linalg.norm(one.vectors(40, 20), axis=1), 1, atol=1e-5)
    assert one.vectors(0, 3).shape == (3, DIMENSION)


def test_words_are_no_stopwords_and_questions_are_made_of_them() -> None:
    talk = MadeTalk()
    said = {word for text in talk.texts(0, 50) for word in spelled(text)}
    assert not said & STOPWORDS
    assert len({root(word) for word in said}) == len(said), "no stemmer takes two words for one"
    for asked in talk.questions(30):
        assert 6 <= len(asked.text.split()) <= 10
