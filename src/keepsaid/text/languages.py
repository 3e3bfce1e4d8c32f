"""Languages: which one a text is written in, its function words, and the further terms that its words are found by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

from keepsaid.text.patterns import lazy
from keepsaid.text.stems import SNOWBALL, snowball
from keepsaid.text.words import fold, grams, root, spelled

_STOPWORDS = """
a about actually after again ah all alright also am an and any anybody anyone anything are aren as at awesome be because
been before being but by bye can cannot could couldn d did didn do does doesn doing don done down during each either
else ever every everybody everyone everything few for from further get gets getting go goes going gone got had hadn haha
has hasn have haven having he hello her here hers herself hey hi him himself his hmm how i if in into is isn it its
itself just let ll lol m many maybe me might mightn mine more most much must mustn my myself needn neither no nor not
nothing now o of off oh ok okay on once one only onto or other our ours ourselves out over own per please quite re
really s same shall shan she should shouldn since so some somebody someone something such sure t than thank thanks that
the their theirs them themselves then there these they this those though through to too under until up upon us ve very
was wasn we well were weren what when where whether which while who whom whose why will with without won would wouldn
wow y yeah yep yes yet you your yours yourself yourselves
"""
STOPWORDS = frozenset(_STOPWORDS.split())
"""English words that queries drop: grammar, interjections, and the pieces apostrophes leave (`don` and `t`)."""


_READ_WORDS, _READ_CHARS = 60, 1_000
"""The beginning of a text, which its language is read from."""

_SHORT_WORDS, _FOUND_LEAST = 3, 2
"""A longer text has at least this number of different function words of its language."""

_STEMMED_WORDS = 2_000
_KANA, _HANGUL, _HAN, _THAI = (
    lazy("[\u3041-\u30ff]"),
    lazy("[\uac00-\ud7af]"),
    lazy("[\u3400-\u4dbf\u4e00-\u9fff]"),
    lazy("[\u0e00-\u0e7f]"),
)
_BY_SCRIPT = ((_KANA, "ja"), (_HANGUL, "ko"), (_HAN, "zh"), (_THAI, "th"))
_UNSPACED = frozenset(language for _, language in _BY_SCRIPT)
STEM_MARK = "ˢ"
"""Ends a Snowball stem in the index: no word of a text ends so, and Porter leaves it as it is."""


@cache
def _tables() -> Mapping[str, tuple[str, ...]]:
    """Function words as they are written, by language."""
    found: dict[str, list[str]] = {}
    lines = files("keepsaid.text").joinpath("data/function_words.txt").read_text("utf-8").splitlines()
    for line in lines:
        if line.startswith("["):
            words = found[line.strip("[]")] = []
        elif not line.startswith("#"):
            words += line.split()
    return {language: tuple(words) for language, words in found.items()}


@cache
def _words_of(language: str) -> frozenset[str]:
    """The folded function words of a language."""
    return frozenset(fold(part) for word in _tables().get(language, ()) for part in spelled(word))


@cache
def _with_english(language: str) -> frozenset[str]:
    return STOPWORDS | _words_of(language)


@cache
def _languages_with() -> Mapping[str, tuple[str, ...]]:
    """The languages that have a function word, English among them; scripts without spaces have letters of their own."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(STOPWORDS, ("en",))
    for language in _tables().keys() - _UNSPACED:
        for word in _words_of(language):
            found[word] = (*found.get(word, ()), language)
    return found


def language_of(text: str) -> str:
    """Return the ISO 639-1 code of a text's language, by its letters and function words; empty if unknown.

    It reads the beginning of the text. A word that several languages have counts less for each of them; among equals
    English comes first, then the alphabet.
    """
    return _language_of(text[:_READ_CHARS])


@lru_cache(32)
def _language_of(text: str) -> str:
    """Read the language; kept for some texts, as one recall asks for the language of its question twenty times."""
    if not text.isascii():
        for letters, language in _BY_SCRIPT:
            if letters.search(text):
                return language
    having, counts = _languages_with(), dict[str, float]()
    words = [fold(word) for word in spelled(text)[:_READ_WORDS]]
    found = [having[word] for word in dict.fromkeys(words) if word in having]
    if len(found) < (_FOUND_LEAST if len(words) > _SHORT_WORDS else 1):
        return ""
    for languages in found:
        for language in languages:
            counts[language] = counts.get(language, 0.0) + 1 / len(languages)
    most = max(counts.values())
    return "en" if counts.get("en", 0.0) == most else min(one for one, count in counts.items() if count == most)


def function_words(text: str) -> frozenset[str]:
    """Return the folded words of grammar and greeting of a text's language, and those of English."""
    return _with_english(language_of(text))


def content_roots(text: str) -> frozenset[str]:
    """Return the roots of the words of a text that are not function words."""
    grammar = function_words(text)
    return frozenset(root(word) for word in spelled(text) if fold(word) not in grammar)


def inflected_terms(text: str) -> list[str]:
    """Return the Snowball stem of each content word of a text, marked as such; nothing for English and unknown ones.

    Words are found by their Porter stems as well. Porter reads every text as English, which other languages are not.
    """
    language = language_of(text)
    if language not in SNOWBALL:
        return []
    grammar = _with_english(language)
    words = (word for word in spelled(text)[:_STEMMED_WORDS] if fold(word) not in grammar)
    return [_inflected(word, language) for word in words if not word.isdecimal()]


def _inflected(word: str, language: str) -> str:
    return f"{fold(snowball(word.lower(), language))}{STEM_MARK}"


def content_terms(text: str) -> list[tuple[str, ...]]:
    """Return the terms that each content word of a text is found by, and each pair of letters; none of them twice."""
    grammar, language = function_words(text), language_of(text)
    found: dict[tuple[str, ...], None] = {}
    for word in spelled(telling_letters(text))[:_STEMMED_WORDS]:
        if fold(word) not in grammar and not grams(word):
            found[(root(word), _inflected(word, language)) if language in SNOWBALL else (root(word),)] = None
    return [*found, *((gram,) for gram in dict.fromkeys(grams(telling_letters(text))))]


def indexed_terms(text: str) -> list[str]:
    """Return the terms that a text is found by beside its words: pairs of letters, letters and Snowball stems."""
    return [*grams(text, letters=True), *inflected_terms(text)]


def query_terms(text: str) -> list[str]:
    """Return the same of a query: pairs of letters outside function words, and Snowball stems."""
    return [*grams(telling_letters(text)), *inflected_terms(text)]


def telling_letters(text: str) -> str:
    """Return the text without function words, where its script sets no spaces between words; others as they are."""
    language = language_of(text)
    return _sequences(language).sub(" ", text) if language in _UNSPACED else text


@cache
def _sequences(language: str) -> re.Pattern[str]:
    """Function words anywhere in a run of letters; of Korean, which has spaces, whole words and what ends one."""
    longest_first = sorted(_tables()[language], key=len, reverse=True)
    any_ = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?:(?<![가-힣])|(?<=[가-힣]{{2}}))(?:{any_})(?![가-힣])" if language == "ko" else any_)
