"""Attributes: what can be said of someone or something, each under one name, and which may have several values.

A slot is a subject and an attribute. An attribute has one value at a time unless it is listed in MANY.
"""

from __future__ import annotations

from keepsaid.text.normal import digest
from keepsaid.text.words import fold, spelled

_SAME = """
lives_in: live in, lives, living in, home, home city, home town, hometown, city, residence, resides in, based in
address: home address, street address, postal address
name: full name, is called, called, goes by
nickname: nick name, nick
birthday: birth day, birth date, date of birth, born on, dob
born_in: birth place, birthplace, place of birth
employer: works at, works for, work at, company, workplace, employed by, employed at
job: job title, profession, occupation, works as, role, position, title
email: email address, e mail, e mail address, mail, mail address
phone: phone number, telephone, telephone number, mobile, mobile number, cell phone
spouse: wife, husband, married to, partner
time_zone: timezone, tz
favourite_colour: favorite color, favourite color, favorite colour
likes: like, loves, love, enjoys, enjoy, is fond of
dislikes: dislike, hates, hate, does not like
speaks: language, languages, spoken languages, speaks language
allergy: allergies, allergic to, is allergic to
hobby: hobbies, pastime
pet: pets, has pet, has a pet, owns pet
child: children, kids, son, daughter
friend: friends, friend of
skill: skills, knows how to, can
visited: has visited, travelled to, traveled to, went to
owns: has, possesses
owes: to do, todo, must, has to, needs to
plans: plan, plans to, intends to, goal, goals, wants to
"""

_MANY = """
likes dislikes speaks allergy hobby pet child friend sibling parent skill visited owns owes plans member_of event
interest decision preference note mentioned tag contact read watched attended
"""

_LEADING = frozenset({"is", "has", "the", "a", "an", "current", "my", "his", "her", "their", "main", "primary"})


def _names() -> dict[str, str]:
    names: dict[str, str] = {}
    for line in _SAME.strip().split("\n"):
        name, others = line.split(":")
        names |= dict.fromkeys((name.replace("_", " "), *(other.strip() for other in others.split(","))), name)
    return names


NAMES = _names()
"""The ways to write an attribute, and its one name."""

_WORDS_MAX = max(len(name.split()) for name in NAMES)

MANY = frozenset(_MANY.split())
"""Attributes that have several values at a time: a new one closes none."""


def slot_name(attribute: str) -> str:
    """The one name of an attribute, whatever its case, accents, hyphens or small words; "" for none."""
    words = [fold(word) for word in spelled(attribute)]
    start, known = 0, _known(words, 0)
    while known is None and start < len(words) - 1 and words[start] in _LEADING:
        start += 1
        known = _known(words, start)
    return known or "_".join(words[start:])


def _known(words: list[str], start: int) -> str | None:
    """The one name of the attribute that these words are, from `start` on; None for one that has no other name."""
    return NAMES.get(" ".join(words[start:])) if len(words) - start <= _WORDS_MAX else None


def single(attribute: str) -> bool:
    """Whether an attribute has one value at a time."""
    return slot_name(attribute) not in MANY


def value_name(value: str) -> str:
    """What the ways to write a value have in common: its words without case, accents and punctuation."""
    return " ".join(fold(word) for word in spelled(value)) or " ".join(value.split()).casefold()


def slot_of(subject: str, attribute: str, value: str) -> bytes | None:
    """The slot of what says one thing about someone, as 16 bytes; None when it says no such thing."""
    about, name = value_name(subject), slot_name(attribute)
    return digest("slot", about, name) if about and name and value_name(value) else None
