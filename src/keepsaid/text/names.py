"""Names: which people, places and things a text calls by name, as far as its capital letters tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from keepsaid.text.dates import DAYS, MONTHS, WEEKDAYS
from keepsaid.text.languages import function_words, language_of
from keepsaid.text.patterns import lazy
from keepsaid.text.topics import is_small_talk
from keepsaid.text.words import fold

NAME_WORDS_MAX = 4
_CHARS_MAX, _NAMES_MAX, _ACRONYM_MAX = 2_000, 24, 6
_TOKEN = lazy(r"[^\W_][\w'’-]*")
_OWNED = ("'s", "’s", "'S", "’S", "'", "’")
_CONTRACTED = lazy(r"['’](?:m|s|t|d|re|ve|ll|em)$")
_JOINING_WORDS = "of the de la le du del dos da do di van von der den of & y e"
_TITLE_WORDS = "mr mrs ms dr prof st"
_OTHER_CAPITALS = "i ok tv pm am lol omg fyi asap diy id ps btw"
_JOINING, _TITLES = frozenset(_JOINING_WORDS.split()), frozenset(_TITLE_WORDS.split())
_NO_NAMES = frozenset((*DAYS, *WEEKDAYS, *MONTHS, *_OTHER_CAPITALS.split()))
_SAME_SENTENCE = frozenset(",'’&/(-")


class Name(NamedTuple):
    """A name as it is written. It is `certain` if its capital letters cannot be due to a sentence that begins."""

    text: str
    certain: bool


class _Word(NamedTuple):
    text: str
    start: int
    end: int
    begins: bool

    @property
    def is_owner(self) -> bool:
        """Whether something that belongs to it follows: its ending was cut off."""
        return len(self.text) < self.end - self.start

    @property
    def is_capital(self) -> bool:
        """Whether it is written as a name is, or as an abbreviation."""
        if not self.text[0].isupper():
            return False
        if len(self.text) < 2 or _CONTRACTED.search(self.text):
            return False
        return not self.text.isupper() or len(self.text) <= _ACRONYM_MAX


def names_in(text: str) -> tuple[Name, ...]:
    """Return the names in a text, each once, the first ones first; German capitals tell nothing.

    A name has at most four words. Days, months, words of grammar and small talk never belong to one.
    """
    words = list(_words(text[:_CHARS_MAX]))
    if not words or _shouts(words):
        return ()
    is_german = language_of(text) == "de"
    grammar = function_words(text) | _NO_NAMES
    found: dict[str, bool] = {}
    for run in _runs(words, grammar):
        for name, certain in _read(run):
            found[name] = found.get(name, False) or (certain and not is_german)
    return tuple(Name(name, certain) for name, certain in list(found.items())[:_NAMES_MAX])


def _words(text: str) -> Iterator[_Word]:
    end = 0
    for token in _TOKEN.finditer(text):
        between = text[end : token.start()]
        begins = end == 0 or not _SAME_SENTENCE.issuperset(between.replace(" ", ""))
        word = token[0]
        for ending in _OWNED:
            word = word.removesuffix(ending)
        word = word.rstrip("-")
        if word:
            yield _Word(word, token.start(), token.end(), begins)
        end = token.end()


def _shouts(words: Iterable[_Word]) -> bool:
    return all(word.text.isupper() for word in words)


def _runs(words: list[_Word], grammar: frozenset[str]) -> Iterator[list[_Word]]:
    """Capitals in a row, with small joining words between two of them."""
    run: list[_Word] = []
    for n, word in enumerate(words):
        folded = fold(word.text)
        follows = not run or _touches(words[n - 1], word)
        is_plain = folded in grammar or folded.removesuffix("s") in grammar or is_small_talk(folded)
        is_name = word.is_capital and not is_plain
        if is_name and follows:
            run.append(word)
            continue
        if run and follows and folded in _JOINING and n + 1 < len(words) and words[n + 1].is_capital:
            run.append(word)
            continue
        if run:
            yield run
        run = [word] if is_name else []
    if run:
        yield run


def _touches(before: _Word, after: _Word) -> bool:
    """Whether only a space stands between two words, or the point of a title and a space."""
    if fold(before.text) in _TITLES:
        return after.start - before.end <= len(". ")
    return after.start - before.end <= 1 and not after.begins and not before.is_owner


def _read(run: list[_Word]) -> Iterator[tuple[str, bool]]:
    while run and fold(run[-1].text) in _JOINING:
        run = run[:-1]
    while len(run) > 1 and fold(run[0].text) in (_TITLES | _JOINING):
        run = [run[1]._replace(begins=False), *run[2:]]
    if not run or len(run) > NAME_WORDS_MAX or any(letter.isdigit() for word in run for letter in word.text):
        return
    yield " ".join(word.text for word in run), not run[0].begins
    if run[0].begins and len(run) > 1:
        yield " ".join(word.text for word in run[1:]), False
