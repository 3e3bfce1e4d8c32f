"""Values of attributes: whether a value is of the kind that its attribute takes, so that an idiom never becomes a fact.

Rules learn only what passes `is_plain`; what a model learned keeps its slot if it passes `is_of_kind`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

from keepsaid.domain.attributes import slot_name
from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

_WORDS_MAX = 8


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


class ValueKind(StrEnum):
    """What the values of an attribute look like."""

    PLACE = "place"
    ADDRESS = "address"
    PERSON = "person"
    WORKPLACE = "workplace"
    OCCUPATION = "occupation"
    DATE = "date"
    EMAIL = "email"
    PHONE = "phone"
    NUMBER = "number"
    CHOICE = "choice"
    OTHER = "other"


_KINDS: Mapping[str, ValueKind] = {
    "lives_in": ValueKind.PLACE,
    "born_in": ValueKind.PLACE,
    "address": ValueKind.ADDRESS,
    "name": ValueKind.PERSON,
    "nickname": ValueKind.PERSON,
    "spouse": ValueKind.PERSON,
    "child": ValueKind.PERSON,
    "friend": ValueKind.PERSON,
    "employer": ValueKind.WORKPLACE,
    "job": ValueKind.OCCUPATION,
    "birthday": ValueKind.DATE,
    "email": ValueKind.EMAIL,
    "phone": ValueKind.PHONE,
    "time_zone": ValueKind.OTHER,
}

_LAST_WORDS: Mapping[ValueKind, frozenset[str]] = {
    ValueKind.NUMBER: _set("""
    number code pin id size age height weight year floor salary rent iban plate account extension postcode zip
    """),
    ValueKind.DATE: frozenset(["birthday", "anniversary", "birthdate"]),
    ValueKind.EMAIL: frozenset(["email"]),
    ValueKind.PERSON: _set("""
    name boss manager mother father mum mom dad brother sister son daughter wife husband partner girlfriend
    boyfriend aunt uncle cousin grandmother grandfather grandma grandpa neighbour neighbor landlord teacher doctor
    dentist lawyer accountant therapist coach tutor nanny babysitter roommate flatmate colleague friend
    """),
    ValueKind.CHOICE: _set("""
    colour color language type brand model diet religion nationality citizenship song film movie
    book dish drink genre currency allergy hobby instrument pronouns
    """),
}
"""Kinds by the last word of an attribute."""

_MONTHS = r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mai|mär|okt|dez|ene|abr|ago|dic|fév|avr|juin|juil|août|déc"
_DATE = lazy(
    rf"(?=.*(?:\d|\b(?:first|second|third)\b))(?:.*\b(?:{_MONTHS})\w*.*|.*\d{{1,4}}[./-]\d{{1,2}}.*|.*\d\s*月.*)",
    re.IGNORECASE,
)
_EMAIL = lazy(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_PHONE = lazy(r"(?:\D*\d){5,20}\D*")
_OCCUPATION = lazy(
    r".*(?:er|or|ist|ian|ant|ent|eer|man|woman|person|nurse|chef|cook|pilot|judge|clerk|guard|vet|smith|teacher|coach"
    r"|designer|analyst|intern|student|ing|ment|ics|ology|law|sales|it)",
    re.IGNORECASE,
)
_WORKPLACE = lazy(
    r"(?:an?|the)\s+(?:[\w'-]+\s+){0,3}(?:bank|hospital|school|university|college|restaurant|bakery|caf[eé]|shop|store"
    r"|factory|start-?up|company|library|museum|hotel|airport|agency|firm|clinic|pharmacy|supermarket|gym|brewery|farm"
    r"|studio|lab|laboratory|institute|ministry|charity|newspaper|garage|theatre|theater|kindergarten|bookshop|bookstore"
    r"|consultancy|non-?profit|ngo|post office|railway|practice)",
    re.IGNORECASE,
)

_LED = _set("""
    a an my your his her our their this that these those some any no another such what like as about on at in to
    from with of under over through between behind beyond without until before after during not never always still
    already almost nearly too so very really pretty quite just only all both half most more less far near up down
    out off back away here there everywhere nowhere somewhere i you he she it we they me him us them because if when
    while where who which how why whatever
    """)
"""Words that begin no value of a kind: an article, a preposition, or the rest of a sentence."""

_STATES = _set("""
    great good bad fine ok okay awful terrible horrible amazing awesome nice lovely perfect wrong right broken dead
    dying killing tired sore late early gone full empty ready sick ill hurt hurting down up off on open closed busy
    free done over lost stolen missing stuck slow fast loud quiet hot cold wet dry dirty clean cheap expensive old
    young mad angry upset sad happy crazy insane stupid silly boring annoying weird strange difficult hard easy
    simple complicated impossible unbearable ruined cancelled canceled delayed due coming approaching soon now later
    nothing everything something anything everyone nobody none unknown same different mine yours fun toast history
    golden mud torture hell heaven bliss chaos madness pain agony trash garbage rubbish
    """)
"""Words for how something is at present: no lasting value begins with one."""

_TIMES = _set("""
    today tomorrow tonight yesterday monday tuesday wednesday thursday friday saturday sunday january february march
    april june july august september october november december christmas easter
    """)
"""Words for when."""

_IDIOMS: Mapping[ValueKind, frozenset[str]] = {
    ValueKind.PLACE: _set("""
    fear hope hopes peace denial sin poverty exile luxury harmony squalor comfort limbo shadow shadows past future
    moment present dream dreams dreamland bubble fantasy fantasyland world matrix neverland wonderland utopia clouds
    cloud nine pyjamas pajamas jeans sweatpants hoodie hoodies leggings constant perpetual eternal terror
    interesting times end slack jira excel vim emacs vscode outlook gmail teams zoom notion terminal github discord
    sofa couch floor bed home bathroom kitchen office library gym car garage van tent basement attic hindsight doubt
    debt shame silence secret secrecy isolation solitude paradise eden babylon mordor hogwarts narnia dark darkness
    stone middle ages cuckoo tears tatters pieces ruins confusion disbelief conclusion conclusions point next tabs
    spaces python rust linux windows mac dvorak firefox chrome postgres version beta plan option decaf tea coffee
    sleep close strike see sit stop help work dance laugh cry eat read write code think wait la
    angst hoffnung ruhe frieden sorge armut hölle chaos scheidung trennung miedo medo paura peur страхе мире надежде
    """),
    ValueKind.WORKPLACE: _set("""
    home night nights weekend weekends day days free fun peanuts money food nothing myself cash love fame glory
    hours minimum pace speed odds height desk laptop computer best heart capacity full half dawn dusk noon midnight
    sunrise sunset large once least last first length random will god satan santa it that this sea ease everyone
    nobody anyone change peace tips beer coffee chocolate exposure
    """),
    ValueKind.PERSON: _set("""
    crazy hase maybe later back old-fashioned old-school when whenever anytime names whatever cab taxi ambulance fool
    asap soon again irresponsible paranoid lazy naive sentimental biased picky cynical pessimist optimist skeptical
    sceptical spoiled selfish superstitious weak strong stubborn nosy greedy tomorrow tonight legion mud satan god
    jesus hitler irony anything surprised impressed shocked unimpressed jealous ungrateful
    """),
}


def kind_of(attribute: str) -> ValueKind:
    """The kind of the values of an attribute."""
    name = slot_name(attribute)
    if (known := _KINDS.get(name)) is not None:
        return known
    last = (attribute.casefold().split() or [""])[-1]
    return next((kind for kind, words in _LAST_WORDS.items() if last in words), ValueKind.OTHER)


def is_of_kind(attribute: str, value: str) -> bool:
    """Whether a value may fill the slot of an attribute: a phone number has digits, a birthday is a date."""
    return _SHAPES.get(kind_of(attribute), _anything)(value)


@frozen
class _Words:
    """The words of a value as written and folded; `lower` says that its writer begins no word with a capital."""

    written: tuple[str, ...]
    folded: tuple[str, ...]
    lower: bool

    def is_state(self, at: int = 0) -> bool:
        """Whether the word there says how something is now, or when: `New York` does not."""
        word = self.folded[at]
        return word in _TIMES or (word in _STATES and not self.written[at][0].isupper())

    def is_capital(self, at: int) -> bool:
        return self.written[at][0].isupper()


def is_plain(attribute: str, value: str, *, lower: bool = False, named: bool = False) -> bool:
    """Whether a value that a rule found is plainly one.

    `lower` says that its writer begins no word with a capital, `named` that it was called a name.
    """
    words = tuple(value.split())
    if not words or len(words) > _WORDS_MAX or not is_of_kind(attribute, value):
        return False
    read = _Words(words, tuple(word.strip(".,;:!\"'()").casefold() for word in words), lower)
    kind = ValueKind.PERSON if named else kind_of(attribute)
    if kind in _BY_FORM:
        return True
    if read.is_state() or not _IDIOMS.get(kind, frozenset()).isdisjoint(read.folded):
        return False
    if attribute.startswith(("favourite ", "favorite ", "preferred ")):
        return read.folded[0] not in _LED - {"a", "an", "the"}
    return _PLAIN[kind](read)


_SHAPES: Mapping[ValueKind, Callable[[str], bool]] = {
    ValueKind.DATE: lambda value: _DATE.fullmatch(value) is not None,
    ValueKind.EMAIL: lambda value: _EMAIL.fullmatch(value) is not None,
    ValueKind.PHONE: lambda value: _PHONE.fullmatch(value) is not None,
    ValueKind.NUMBER: lambda value: any(letter.isdigit() for letter in value),
    ValueKind.PERSON: lambda value: any(letter.isalpha() for letter in value) and not value[:1].isdigit(),
}
_BY_FORM = frozenset({ValueKind.DATE, ValueKind.EMAIL, ValueKind.PHONE, ValueKind.NUMBER})
"""Kinds whose values are recognised by their form alone."""

_SMALL = _set("of the de la le du des del van von der den da do dos di al el and y und et e & und")
_REGIONS = _set("north south east west central downtown northern southern eastern western rural greater")


def _anything(value: str) -> bool:
    return bool(value.strip())


def _is_name(words: _Words) -> bool:
    """Whether all words but small ones begin with a capital, or are one or two of who writes without."""
    if words.folded[0] in _LED or len(words.written) > 5:
        return False
    if words.lower and not any(map(words.is_capital, range(len(words.written)))):
        return len(words.written) <= 2 and all(word.isalpha() for word in words.folded)
    return all(not word[0].islower() or word in _SMALL for word in words.written)


def _is_after_the(words: _Words) -> bool:
    return len(words.written) > 1 and words.folded[0] == "the" and words.is_capital(1)


def _is_place(words: _Words) -> bool:
    if words.folded[0] in ("a", "an") and not {"near", "outside"}.isdisjoint(words.folded):
        return words.is_capital(-1)
    if words.folded[0] in _REGIONS:
        return any(map(words.is_capital, range(len(words.written))))
    return _is_after_the(words) or _is_name(words)


def _is_workplace(words: _Words) -> bool:
    return _WORKPLACE.fullmatch(" ".join(words.written)) is not None or _is_after_the(words) or _is_name(words)


def _is_occupation(value: _Words) -> bool:
    words = value.folded[1:] if value.folded[0] in ("a", "an") else value.folded
    if not 0 < len(words) <= 4 or words[0] in _LED or not (_STATES | _NO_OCCUPATION).isdisjoint(words):
        return False
    is_title = len(words) > 1 and _is_name(value)
    return is_title or _OCCUPATION.fullmatch(words[-1]) is not None


_NO_OCCUPATION = _set("killer bummer downer disaster horror terror error torment punishment boring exhausting")


def _is_choice(words: _Words) -> bool:
    first = words.folded[0]
    return first not in _LED - {"a", "an", "the"} and len(words.written) <= 5 and not first.endswith(("ing", "ly"))


def _is_specific(words: _Words) -> bool:
    """Whether a name or a number is the value, behind at most an article."""
    at = int(words.folded[0] in ("a", "an", "the"))
    if at == len(words.written) or words.folded[at] in _LED or words.is_state(at):
        return False
    return not words.written[at][0].islower() or any(letter.isdigit() for letter in words.written[at])


def _is_address(words: _Words) -> bool:
    return words.folded[0] not in _LED and any(letter.isdigit() for word in words.written for letter in word)


_PLAIN: Mapping[ValueKind, Callable[[_Words], bool]] = {
    ValueKind.PLACE: _is_place,
    ValueKind.ADDRESS: _is_address,
    ValueKind.PERSON: _is_name,
    ValueKind.WORKPLACE: _is_workplace,
    ValueKind.OCCUPATION: _is_occupation,
    ValueKind.CHOICE: _is_choice,
    ValueKind.OTHER: _is_specific,
}
