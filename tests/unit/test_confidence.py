from __future__ import annotations

import pytest

from keepsaid.domain.memory import Found
from keepsaid.memory.recall.ranking import Confidence, coverage, spread, steady


def found(*scores: float) -> tuple[Found, ...]:
    return tuple(Found(n, score) for n, score in enumerate(scores))


def test_words_that_are_found_make_the_text_leg_surer() -> None:
    few, usual, most = (coverage(found(score, 0.01)) for score in (0.1, 0.4, 0.9))
    assert few == pytest.approx(0.5)
    assert usual == pytest.approx(1)
    assert most == pytest.approx(1.5)


def test_a_best_that_stands_out_makes_the_vector_leg_surer() -> None:
    crowd, usual, alone = (spread(found(1.0, *[rest] * 12)) for rest in (0.85, 0.7, 0.4))
    assert crowd == pytest.approx(0.5)
    assert usual == pytest.approx(1)
    assert alone == pytest.approx(2)


@pytest.mark.parametrize("confidence", [coverage, spread, steady])
@pytest.mark.parametrize("scores", [(), (0.5,), (1e-9,), (1e9,), (1.0,) * 20, (1.0, *[0.0] * 20), (0.0,) * 20])
def test_no_leg_is_ever_silenced_or_alone(confidence: Confidence, scores: tuple[float, ...]) -> None:
    assert 1 / 3 <= confidence(found(*scores)) <= 3
