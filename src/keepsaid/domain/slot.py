"""Slots: pending questions of a lane, the type of the answer, and whether a text is such an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from enum import StrEnum

from keepsaid.text.dates import read_moment
from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

EXPIRY_MS = 600_000
"""How long a question waits for its answer, unless the config says otherwise."""

TAKEN_OVER = "another question was asked"
"""Why a slot is cleared whose person is asked something newer in the same lane."""


class Expected(StrEnum):
    """The type of an answer."""

    TEXT = "text"
    BOOLEAN = "boolean"
    DATE_TIME = "date_time"
    NUMBER = "number"
    LOCATION = "location"
    SELECTION = "selection"


class SlotState(StrEnum):
    """Where a question stands; the moves are in `states.py`."""

    OPEN = "open"
    FILLED = "filled"
    CLEARED = "cleared"
    EXPIRED = "expired"


class OnMismatch(StrEnum):
    """The handling of a question when its person writes something that does not answer it."""

    CLEAR = "clear"
    KEEP = "keep"


@frozen
class SlotTerms:
    """How long a question waits, what ends it, and in whose time dates are read."""

    expiry_ms: int = EXPIRY_MS
    on_mismatch: OnMismatch = OnMismatch.CLEAR
    zone: tzinfo = UTC


@frozen
class Question:
    """What is asked, and the type of the answer; `options` belong to a selection."""

    text: str
    expected: Expected = Expected.TEXT
    options: tuple[str, ...] = ()


@frozen
class Slot:
    """A question that was asked of one person in one lane; times are milliseconds UTC.

    `id` is that of the turn that asked, so that a turn told twice asks once. `anchor` names the reply that asks,
    `filled_by` the message that answered, `value` its answer as read, `reason` why it ended otherwise.
    """

    id: int
    person: str
    question: Question
    anchor: str
    opened_at: int
    expires_at: int
    state: SlotState = SlotState.OPEN
    filled_by: str = ""
    value: str = ""
    reason: str = ""
    ended_at: int | None = None


_DEGREES = r"([-+−]?\d{1,3}(?:\.\d+)?)(?:\s*+°)?(?:\s*+([NSEW]))?"
_COORDINATES = lazy(rf"(?:geo:\s*+)?\(?\s*+{_DEGREES}(?:\s*+[,;]\s*+| \s*+){_DEGREES}(?:\s*+\))?", re.IGNORECASE)
"""Runs of spaces are taken whole (`*+`): to try every division of one would take time by its fourth power."""
_LED = lazy(
    r"(?:(?:i'?m|i am|we'?re|we are|it'?s|i live|we live|meet(?: me)?|ich bin|ich wohne|wir sind|je suis|estoy|я)\s+)?"
    r"(?:(in|at|near|from|to|im|bei|aus|nach|à|a|au|aux|en|chez|cerca de|de|в|на|из|у|около)\s+)(?P<name>.+)",
    re.IGNORECASE,
)
_JOINING_WORDS = """
of the de la le les du des del el los las am an der den dem das die im bei upon sur on and y und et st st.
van von da do di
"""
_NO_PLACE_WORDS = """
a an minute minutes hour hours second seconds day days week weeks month months year years moment time while bit
fact case general short private person bed trouble love charge favor favour my your his her our their it this
that all any some person hi hello hey thanks thank yes no ok okay sure please sorry stop cancel help what why
when where who how which never nothing maybe i you we they he she is are was will can do does did not
morning afternoon evening night today tomorrow monday tuesday wednesday thursday friday saturday sunday january
february march april may june july august september october november december
ja nein danke hallo oui non merci bonjour sí si gracias hola да нет привет спасибо
"""
_JOINING, _NO_PLACE = (frozenset(words.split()) for words in (_JOINING_WORDS, _NO_PLACE_WORDS))
_WORDS_MAX = 6
_CHARS_MAX = 120
_ENDS = ".!,; "


def read_place(text: str) -> str | None:
    """`latitude,longitude`, or the name of a place; None for what does not look like one.

    A name follows a word such as `in`, or is written large throughout.
    """
    if (found := _COORDINATES.fullmatch(text.strip())) is not None:
        return _coordinates(*found.groups())
    if "?" in text or "\n" in text or len(text) > _CHARS_MAX:
        return None
    text = text.strip(_ENDS)
    if (led := _LED.fullmatch(text)) is not None:
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
    # names are written large; scripts without cases cannot tell
    return not large or all(not word[0].islower() or word.casefold() in _JOINING for word in words)


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


TEXT_CHARS_MAX = 2_000
"""A longer text answers no question."""


@frozen
class DatedText:
    """A text, when it arrived (milliseconds UTC), and the time zone in which its dates are read."""

    text: str
    at: int
    zone: tzinfo = UTC

    @property
    def now(self) -> datetime:
        """When it came, there."""
        return (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self.at)).astimezone(self.zone)


def read_answer(question: Question, heard: DatedText) -> str | None:
    """The value of an answer, as text; None when it does not answer this question.

    boolean: `true`, `false`. number: digits. date_time: ISO 8601. location: a name or `latitude,longitude`.
    selection: the option as it was offered.
    """
    text = heard.text.strip()
    if not text or len(text) > TEXT_CHARS_MAX or text.startswith("/"):
        return None
    return _READERS[question.expected](question, text, heard)


_YES_WORDS = """
yes y yeah yep yup yea aye sure ok okay okey true correct right absolutely definitely certainly indeed agreed
ja jo jep jawohl klar genau sicher doch oui ouais si sí sì claro vale sim tak ano evet da да ага конечно так
是 是的 对 好 好的 可以 行 はい ええ うん 네 예 응 हाँ हां نعم כן 👍 ✅ 👌
"""
_NO_WORDS = """
no n nope nah never false incorrect wrong nein nö nee nicht non não nao nie ne hayır hayir нет неа не ні
不 不是 不要 不行 否 没有 いいえ いや 아니요 아니 नहीं لا לא 👎 ❌ 🚫
"""
_COURTESY_WORDS = """
please thanks thank you very much of course do it go ahead that's thats that is is i it am want would like to
bitte danke gerne gern merci plait plaît s'il vous te bien sûr gracias por favor grazie obrigado obrigada
спасибо пожалуйста
"""
_YES, _NO, _COURTESY = (frozenset(words.split()) for words in (_YES_WORDS, _NO_WORDS, _COURTESY_WORDS))
_WORD = lazy(r"[^\s,.;:!…]+")


def _boolean(_question: Question, text: str, _heard: DatedText) -> str | None:
    words = [word.strip("'\"()*_") for word in _WORD.findall(text.casefold())]
    yes, no = any(word in _YES for word in words), any(word in _NO for word in words)
    known = all(word in _YES or word in _NO or word in _COURTESY for word in words)
    return str(yes).lower() if known and yes is not no else None


_ABOUT = r"(?:(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|maybe|exactly|it'?s|i think|etwa|ungefähr|"
_ABOUT += r"environ|unos|примерно|около)\s++|[~≈]\s*+)*+"
_NUMBER = lazy(
    rf"{_ABOUT}[$€£¥#]?\s*+(?P<digits>[-+−]?(?:\d[\d.,' ]*\d|\d)|[a-zäöüßéèáíóúñа-яё]{{1,30}})\s*+"
    r"(?:[^\W\d]{1,20}|[%°$€£¥]|[^\W\d]{1,3}\.)?\s*+(?:(?:,\s*+)?(?:please|thanks|bitte|danke))?[.!]?",
    re.IGNORECASE,
)
_GROUPED = lazy(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-+]?\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?")
_CONTINENTAL = lazy(r"[-+]?\d{1,3}(?:\.\d{3})+,\d+|[-+]?\d{1,3}(?:\.\d{3}){2,}|[-+]?\d+,\d+")
_PLAIN = lazy(r"[-+]?\d+(?:\.\d+)?")
_SPELLED = """
zero null zéro cero ноль; one eins ein un une uno una один; two zwei deux dos два; three drei trois tres три
four vier quatre cuatro четыре; five fünf cinq cinco пять; six sechs seis шесть; seven sieben sept siete семь
eight acht huit ocho восемь; nine neun neuf nueve девять; ten zehn dix diez десять; eleven elf onze once одиннадцать
twelve zwölf douze doce двенадцать
"""
_NAMED: Mapping[str, int] = {
    word: n for n, words in enumerate(re.split(r"[;\n]", _SPELLED.strip())) for word in words.split()
}


def _number(_question: Question, text: str, _heard: DatedText) -> str | None:
    if (found := _NUMBER.fullmatch(text)) is None:
        return None
    digits = found["digits"].replace("−", "-")
    if digits.casefold() in _NAMED:
        return str(_NAMED[digits.casefold()])
    if _GROUPED.fullmatch(digits):
        digits = re.sub(r"[ ']", "", digits)
        whole, _, rest = digits.partition(",")
        # a single comma before three digits sets thousands apart, else it is a decimal point
        is_decimal = digits.count(",") == 1 and "." not in digits and len(rest) != 3
        digits = f"{whole}.{rest}" if is_decimal else digits.replace(",", "")
    elif _CONTINENTAL.fullmatch(digits):
        digits = digits.replace(".", "").replace(",", ".")
    return f"{Decimal(digits):f}" if _PLAIN.fullmatch(digits) else None


_CHOSEN = lazy(r"(?:(?:option|number|no\.?|nr\.?|the|nummer|numéro|número)\s+|#)*(\d{1,2})[.)]?", re.IGNORECASE)
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_ORDINALS = _ORDINAL_WORDS.split()
_ORDINAL = lazy(r"(?:the\s+)?(\w+)(?:\s+(?:one|option))?[.!]?", re.IGNORECASE)
_DENIES_WORDS = "not no neither none nor except nicht kein keine pas ni не"
_DENIES = frozenset(_DENIES_WORDS.split())
_PICK_WORDS_MAX = 8


def _selection(question: Question, text: str, _heard: DatedText) -> str | None:
    """The option that is named, by its text, its number, or as the one of them that stands in a few words."""
    said = _plain(text)
    if by_text := [option for option in question.options if _plain(option) == said]:
        return by_text[0]
    if (place := _place(text)) is not None:
        return question.options[place - 1] if 1 <= place <= len(question.options) else None
    words = said.split()
    if len(words) > _PICK_WORDS_MAX or "?" in text or _DENIES & set(words):
        return None
    held = [option for option in question.options if f" {_plain(option)} " in f" {said} "]
    whole = [option for option in held if not any(_plain(option) in _plain(other) for other in held if other != option)]
    return whole[0] if len(whole) == 1 else None


def _place(text: str) -> int | None:
    numbered, ordinal = _CHOSEN.fullmatch(text), _ORDINAL.fullmatch(text)
    if numbered is not None:
        return int(numbered[1])
    named = ordinal[1].casefold() if ordinal is not None else ""
    return _ORDINALS.index(named) + 1 if named in _ORDINALS else None


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+(?:['’.-]\w+)*", text.casefold()))


def _text(_question: Question, text: str, _heard: DatedText) -> str | None:
    """Anything that is not a question itself."""
    return None if text.rstrip().endswith(("?", "？", "؟")) else text


_READERS: Mapping[Expected, Callable[[Question, str, DatedText], str | None]] = {
    Expected.TEXT: _text,
    Expected.BOOLEAN: _boolean,
    Expected.NUMBER: _number,
    Expected.SELECTION: _selection,
    Expected.DATE_TIME: lambda _, text, heard: read_moment(text, heard.now),
    Expected.LOCATION: lambda _, text, __: read_place(text),
}
