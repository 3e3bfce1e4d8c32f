"""Stems: what the forms of a word have in common, by Porter for English and by Snowball for other languages."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LENGTH_MAX = 64
_ENDING_MAX = 7

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "logi": "log", "bli": "ble",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate",
    "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive",
    "biliti": "ble",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = dict.fromkeys(
    (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate",
        "iti", "ous", "ive", "ize",
    ),
    "",
)  # fmt: skip

_STEPS = tuple(
    (endings, frozenset(ending[-2:] for ending in endings), above)
    for endings, above in ((_STEP_2, 0), (_STEP_3, 0), (_STEP_4, 1))
)
"""What is replaced in order: endings, the last two letters of any, and the measure that the rest of a word exceeds."""


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The stem of a folded word; words that are short, very long or not English come back as they are."""
    if not 3 <= len(word.encode("utf-8", "surrogatepass")) <= _LENGTH_MAX:
        return word
    word = _past(_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = f"{word[:-1]}i"
    for endings, lasts, above in _STEPS:
        if word[-2:] in lasts:
            word = _replaced(word, endings, above)
    return _tidied(word)


def _plural(word: str) -> str:
    if not word.endswith("s") or word.endswith("ss"):
        return word
    long_ending = (word.endswith("ies") and len(word) > 3) or (word.endswith("sses") and len(word) > 4)
    return word[:-2] if long_ending else word[:-1]


def _past(word: str) -> str:
    if word.endswith("eed") and len(word) > 3:
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ing", "ed"):
        bare = word.removesuffix(ending)
        if bare != word and bare:
            return _mended(bare) if _has_vowel(bare) else word
    return word


def _mended(bare: str) -> str:
    """A word that lost -ed or -ing gets back the e, or loses the double letter, that the ending cost or brought."""
    if len(bare) > 2 and bare.endswith(("at", "bl", "iz")):
        return f"{bare}e"
    last = bare[-1]
    if len(bare) > 1 and last == bare[-2] and last not in "aeioulsz":
        return bare[:-1]
    return f"{bare}e" if _measure(bare) == 1 and _ends_short(bare) else bare


def _replaced(word: str, endings: dict[str, str], above: int) -> str:
    """The word with its longest listed ending replaced, if what stands before it has a measure above `above`."""
    for size in range(min(_ENDING_MAX, len(word) - 1), 1, -1):
        if (ending := word[-size:]) in endings:
            bare = word[:-size]
            if _measure(bare) <= above or (ending == "ion" and bare[-1] not in "st"):
                return word
            return bare + endings[ending]
    return word


def _tidied(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


class _Shapes(dict[int, str]):
    """The shape of each letter but y, found when it is first met."""

    def __missing__(self, code: int) -> str:
        """Find the shape of a letter, and keep it."""
        self[code] = "v" if chr(code) in "aeiou" else "c"
        return self[code]


_SHAPES = _Shapes()


def _shape(word: str) -> str:
    """Consonants and vowels: `c` and `v`; a y is a vowel after a consonant."""
    if "y" not in word:
        return word.translate(_SHAPES)
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How often a vowel is followed by a consonant."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return any(letter in "aeiou" for letter in word) or "y" in word[1:]


def _ends_short(word: str) -> bool:
    """Whether the word ends consonant, vowel, consonant, the last not w, x or y."""
    return word[-1:] not in ("w", "x", "y") and _shape(word).endswith("cvc")


SNOWBALL = {
    "cs": "czech", "da": "danish", "de": "german", "es": "spanish", "fi": "finnish", "fr": "french",
    "id": "indonesian", "it": "italian", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese",
    "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
"""The languages whose stems are known beside English, and what Snowball calls them."""


def snowball(word: str, language: str) -> str:
    """Return the Snowball stem of a lower-case word of one of these languages, accents and all."""
    return word if len(word) > _LENGTH_MAX else _snowball(word, language)


@lru_cache(maxsize=50_000)
def _snowball(word: str, language: str) -> str:
    return _stemmer(language)(word)


_OF_THREAD = threading.local()
"""A stemmer holds the word it is at work on, so each thread has its own."""


def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer  # noqa: PLC0415 - a program that meets no other language starts without

    made: dict[str, Callable[[str], str]] = _OF_THREAD.__dict__
    if language not in made:
        made[language] = snowballstemmer.stemmer(SNOWBALL[language]).stemWord
    return made[language]
