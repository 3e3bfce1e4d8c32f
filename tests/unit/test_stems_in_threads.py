"""Stems are the same whichever threads ask for them at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer

from keepsaid.text.stems import snowball

_STARTS, _MIDDLES, _ENDS = ("haus", "wagen", "kinder"), "abcdefgh", ("heiten", "es")
_WORDS = [f"{start}{middle}{end}" for start in _STARTS for middle in _MIDDLES for end in _ENDS]


@pytest.fixture
def _switching() -> Iterator[None]:
    """Threads take turns after every few steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switching")
def test_threads_do_not_spoil_the_stems_of_one_another() -> None:
    by_itself = snowballstemmer.stemmer("german")
    with ThreadPoolExecutor(4) as pool:
        for turn in range(20):
            words = [f"{'ab' * turn}{word}" for word in _WORDS]  # none of them was asked for before
            found = list(pool.map(lambda word: snowball(word, "de"), words))
            assert found == [by_itself.stemWord(word) for word in words]
