"""Memory commands in natural language: what a sentence asks to remember or to forget, in twelve languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from keepsaid.text.patterns import lazy

_READ_CHARS_MAX, _SENTENCE_CHARS_MAX, _SENTENCES_MAX = 20_000, 2_000, 200
_ABBREVIATIONS = ("Dr", "dr", "Mrs", "Mr", "Ms", "St", "Prof", "prof", "Dra", "Sr", "Sra", "Nr", "nr", "[A-Z]")
_SENTENCE = lazy(
    r"(?<=[.!?])" + "".join(rf"(?<!\b{one}\.)" for one in _ABBREVIATIONS) + r"\s+|(?<=[。！？])\s*|\n+",
)
_QUESTION = ("?", "？", "吗", "嗎", "か")

_LABEL = r"(?: ?[:：] ?| ?[–—] ?| - )"
_PAUSE = r"(?: ?[:：,，、;；] ?| ?[–—] ?| - )"
_BREAK = r"(?: ?[,，、;；] ?| ?[–—] ?| - )"
_STOP = r"[\s.!?…。！？)\"»”]*"
_CLAUSE = r"(?: ?[,，、;；–—.].*| - .*)?"
"""What may follow a request to forget in the same sentence: a reason."""

_SIMPLER = str.maketrans(
    "’‘ʼ記憶請幫煩別備註嗎刪關於說過個給這條筆錄會後來從裡麼沒",
    "'''记忆请帮烦别备注吗删关于说过个给这条笔录会后来从里么没",
)
"""One apostrophe, and simplified Chinese, letter by letter, so that positions stay."""

_MARK = lazy(r"(?<!\(\?)[*+&_~:,;]")
"""A mark of a template, but for the colon of a group."""

_REMEMBER, _ASK, _FORGET = "remember", "ask", "forget"


def sentences(text: str) -> list[str]:
    """Return the sentences of the beginning of a text, each with single spaces."""
    pieces = (" ".join(piece.split()) for piece in _SENTENCE.split(text[:_READ_CHARS_MAX], _SENTENCES_MAX))
    return [piece for piece in pieces if piece]


def is_question(sentence: str) -> bool:
    """Whether a sentence ends as a question does."""
    return sentence.endswith(_QUESTION)


def content_to_remember(sentence: str, before: str = "") -> str:
    """Return what a sentence asks to remember; "" if it asks nothing of the kind.

    `before` is the sentence before it: "Remember that." asks to remember that one.
    """
    sentence = sentence[:_SENTENCE_CHARS_MAX]
    simple = _simple(sentence)
    kinds = (_ASK,) if is_question(sentence) else (_REMEMBER, _ASK)
    for language in _languages_in(simple):
        for kind in kinds:
            if found := _pattern(language, kind).fullmatch(simple):
                start, end = found.span(found.lastindex or 0)
                if not _excluded(language, "content", simple[start:end]):
                    return sentence[start:end].strip()
            if before and not is_question(before) and _closing(language, kind).fullmatch(simple):
                return before
    return ""


def object_to_forget(text: str) -> str | None:
    """Return the words for what a text asks to forget, "" if it names nothing; None if it asks nothing of the kind."""
    for sentence in sentences(text):
        read = sentence[:_SENTENCE_CHARS_MAX]
        simple = _simple(read)
        for language in _languages_in(simple):
            if found := _pattern(language, _FORGET).fullmatch(simple):
                start, end = found.span(found.lastindex) if found.lastindex else (0, 0)
                if not _excluded(language, "object", simple[start:end]):
                    return read[start:end].strip(" ,.!?…。！？、，")
    return None


@cache
def _tables() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """The lines of the table of commands, by language and section."""
    found: dict[tuple[str, str], list[str]] = {}
    lines: list[str] = []
    for line in files("keepsaid.text").joinpath("data/memory_commands.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            language, section = line.strip("[]").split()
            lines = found[language, section] = []
        elif line and not line.startswith("#"):
            lines.append(_simple(line))
    return {place: tuple(rows) for place, rows in found.items()}


@cache
def _keys() -> Mapping[str, tuple[str, ...]]:
    """By language: pieces of words, one of which every command of the language has."""
    keyed = {language: rows for (language, section), rows in _tables().items() if section == "keys"}
    return {
        language: tuple(key for row in rows for key in row.translate(_base_letters()).split())
        for language, rows in keyed.items()
    }


def _languages_in(simple: str) -> Iterator[str]:
    lower = simple.lower().translate(_base_letters())
    return (language for language, keys in _keys().items() if any(key in lower for key in keys))


@cache
def _base_letters() -> Mapping[int, int]:
    """Latin letters and the Cyrillic io without their accents, each one letter."""
    letters = ((code, ord(unicodedata.normalize("NFD", chr(code))[0])) for code in range(0xC0, 0x250))
    return {code: base for code, base in letters if base != code} | str.maketrans("łŁёЁ", "lLеЕ")


def _simple(text: str) -> str:
    return text.translate(_SIMPLER)


def _any_of(language: str, section: str) -> str:
    """An expression of the lines of a section; of a section that is missing, one that matches nothing."""
    return "|".join(map(_expression, _tables().get((language, section), ()))) or r"(?!)"


def _expression(line: str) -> str:
    """The expression of a line without marks: a letter with an accent matches the one without, and not the reverse."""
    base = _base_letters()
    plain = re.sub(r"\((?!\?)", "(?:", line).replace("[", "(?:").replace("]", ")?")
    return "".join(f"[{one}{chr(base[ord(one)])}]" if ord(one) in base else one for one in plain)


@cache
def _marks(language: str) -> Mapping[str, str]:
    """The expression of each mark of a template in a language."""
    spaced = (language, "unspaced") not in _tables()
    space, end = (" ", r"(?!\w)") if spaced else (" ?", "")
    lead = rf"(?:(?:{_any_of(language, 'lead')}){end}[,，、!！:]?{space if not spaced else ' '})"
    that = rf"(?:{_PAUSE}| )(?:{_any_of(language, 'that')})(?:(?<=') ?| )"
    return {
        "*": r"(\S.*?)",
        "+": rf"((?:{_any_of(language, 'subject')})\S.*?)",
        "&": rf"(?: ?(?:{_any_of(language, 'ending')})){{0,3}}",
        "_": rf"(?:[,，、]?{space}(?:{_any_of(language, 'filler')}){end}){{0,3}}",
        "~": rf"(?:{that}|{_PAUSE})" if spaced else rf"{_PAUSE}?",
        ":": _LABEL,
        ",": _PAUSE,
        ";": rf"(?:{_BREAK}{lead}{{0,2}}| (?:{_any_of(language, 'and')}) )",
        "lead": rf"[¡¿«„“\"(]?{lead}{{0,3}}",
        "tail": rf"(?:[,，、]?{space}(?:{_any_of(language, 'tail')}){end}){{0,3}}",
    }


def _template(line: str, marks: Mapping[str, str]) -> str:
    return _MARK.sub(lambda mark: marks[mark[0]], _expression(line))


@cache
def _pattern(language: str, kind: str) -> re.Pattern[str]:
    """The expression of all templates of a kind; its only groups are those of the content."""
    marks = _marks(language)
    forms = "|".join(_template(line, marks) for line in _tables().get((language, kind), ())) or r"(?!)"
    polite, after = "", marks["tail"]
    if kind == _FORGET:
        polite = "|".join(_template(line, marks) for line in _tables().get((language, "polite"), ())) or r"(?!)"
        polite, after = rf"(?:(?:{polite}) ?)?", marks["tail"] + _CLAUSE
    return re.compile(rf"{marks['lead']}{polite}(?:{forms}){after}{_STOP}", re.IGNORECASE)


@cache
def _closing(language: str, kind: str) -> re.Pattern[str]:
    """The expression of what may stand behind the content, on its own."""
    marks = _marks(language)
    closings = [line[2:] for line in _tables().get((language, kind), ()) if line.startswith("*;")]
    forms = "|".join(_template(line, marks) for line in closings) or r"(?!)"
    return re.compile(rf"{marks['lead']}(?:{forms}){marks['tail']}{_STOP}", re.IGNORECASE)


def _excluded(language: str, what: str, said: str) -> bool:
    """Whether a content or an object is listed as none."""
    return _exclusions(language, what).fullmatch(said) is not None


@cache
def _exclusions(language: str, what: str) -> re.Pattern[str]:
    rows = _tables().get((language, f"not-{what}"), ())
    forms = "|".join(_expression(row).replace("*", ".*") for row in rows) or r"(?!)"
    return re.compile(rf"(?:{forms})[\s.!?…]*", re.IGNORECASE)
