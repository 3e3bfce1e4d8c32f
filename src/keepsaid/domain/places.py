"""Places: coordinates and names of places in a short answer."""

from __future__ import annotations

import re

_DEGREES = r"([-+−]?\d{1,3}(?:\.\d+)?)(?:\s*+°)?(?:\s*+([NSEW]))?"
_COORDINATES = re.compile(rf"(?:geo:\s*+)?\(?\s*+{_DEGREES}(?:\s*+[,;]\s*+| \s*+){_DEGREES}(?:\s*+\))?", re.IGNORECASE)
"""Runs of spaces are taken whole (`*+`): to try every division of one would take time by its fourth power."""
_LED = re.compile(
    r"(?:(?:i'?m|i am|we'?re|we are|it'?s|i live|we live|meet(?: me)?|ich bin|ich wohne|wir sind|je suis|estoy|я)\s+)?"
    r"(?:(in|at|near|from|to|im|bei|aus|nach|à|a|au|aux|en|chez|cerca de|de|в|на|из|у|около)\s+)(?P<name>.+)",
    re.IGNORECASE,
)
_JOINING_WORDS = """
of the de la le les du des del el los las am an der den dem das die im bei upon sur on and y und et st st.
van von da do di
"""
_JOINING = frozenset(_JOINING_WORDS.split())
_NO_PLACE_WORDS = """
a an minute minutes hour hours second seconds day days week weeks month months year years moment time while bit
fact case general short private person bed trouble love charge favor favour my your his her our their it this
that all any some person hi hello hey thanks thank yes no ok okay sure please sorry stop cancel help what why
when where who how which never nothing maybe i you we they he she is are was will can do does did not
morning afternoon evening night today tomorrow monday tuesday wednesday thursday friday saturday sunday january
february march april may june july august september october november december
ja nein danke hallo oui non merci bonjour sí si gracias hola да нет привет спасибо
"""
_NO_PLACE = frozenset(_NO_PLACE_WORDS.split())
_WORDS_MAX = 6
_CHARS_MAX = 120
_ENDS = ".!,; "


def read_place(text: str) -> str | None:
    """`latitude,longitude`, or the name of a place; None for what does not look like one.

    A name follows a word such as `in`, or is written large throughout.
    """
    found = _COORDINATES.fullmatch(text.strip())
    if found is not None:
        return _coordinates(*found.groups())
    if "?" in text or "\n" in text or len(text) > _CHARS_MAX:
        return None
    text = text.strip(_ENDS)
    led = _LED.fullmatch(text)
    if led is not None:
        name = led["name"].strip(_ENDS)
        return name if _is_name(name, large=False) else None
    return text if _is_name(text, large=True) else None


def _is_name(name: str, *, large: bool) -> bool:
    words = re.findall(r"[^\s,]+", name)
    if not words or len(words) > _WORDS_MAX:
        return False
    plain = [word.casefold().strip(".") for word in words]
    if any(word in _NO_PLACE for word in plain) or all(word in _JOINING or not word[0].isalpha() for word in plain):
        return False
    return not large or all(_is_large(word) or word.casefold() in _JOINING for word in words)


def _is_large(word: str) -> bool:
    """Whether a word is written as names are; scripts without cases cannot tell."""
    return not word[0].islower()


def _coordinates(first: str, of_first: str | None, second: str, of_second: str | None) -> str | None:
    pair = [(_degrees(first, of_first), of_first), (_degrees(second, of_second), of_second)]
    if (of_first or "").upper() in ("E", "W") or (of_second or "").upper() in ("N", "S"):
        pair.reverse()
    (latitude, north), (longitude, east) = pair
    sides = ((north or "N").upper() in ("N", "S"), (east or "E").upper() in ("E", "W"))
    fits = all(sides) and abs(latitude) <= 90 and abs(longitude) <= 180
    return f"{latitude:g},{longitude:g}" if fits else None


def _degrees(digits: str, side: str | None) -> float:
    value = float(digits.replace("−", "-"))
    return -value if side is not None and side.upper() in ("S", "W") else value
