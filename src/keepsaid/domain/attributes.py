"""Attributes: what can be said of someone or something, each under one name, and what of it held when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from keepsaid.domain.visibility import within
from keepsaid.text.normal import digest
from keepsaid.text.words import fold, spelled
from keepsaid.values import frozen

_SAME = """
lives_in: live in, lives, living in, home, home city, home town, hometown, city, residence, resides in, based in,
  city residence, place residence, residence city, location, home location, living location, living place, place living,
  lives at, residing in, city living, town, resident of, moved to, relocated to, country residence
address: home address, street address, postal address, mailing address, address home, street
name: full name, is called, called, goes by, preferred name, wants to be called, person name
nickname: nick name, nick
birthday: birth day, birth date, date of birth, born on, dob, date birthday, birthday date, born
born_in: birth place, birthplace, place of birth, born at, city birth, birth city, native city
employer: works at, works for, work at, company, workplace, employed by, employed at, employer name, company name,
  place work, work place, work company, working at, working for, workplace name, job at, employment, company work
job: job title, profession, occupation, works as, role, position, title, job role, job position, work role,
  professional role, working as, employed as, career, line work
email: email address, e mail, e mail address, mail, mail address, contact email, email contact
phone: phone number, telephone, telephone number, mobile, mobile number, cell phone, phone contact, contact number,
  contact phone, mobile phone, cell, cell number, number phone
spouse: wife, husband, married to, partner, wife name, husband name, spouse name, partner name, life partner
time_zone: timezone, tz, zone time, local time zone
car: vehicle, drives, car model, model car, car make, owns car, automobile, drives car
diet: dietary preference, eating habits, eats, dietary restriction, dietary habit, diet type, diet preference
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

_FILLER = frozenset(
    {"of", "the", "a", "an", "in", "at", "is", "has", "current", "currently", "present", "new", "latest", "primary"}
    | {"main", "personal", "user", "users", "their", "his", "her", "my", "s", "own", "official", "actual", "now"}
)
"""Words that change nothing about which attribute is meant."""

_NAMED = "first last middle maiden family given domain user brand stage file nick pen full"
_KINDS_OF_NAMES = frozenset(_NAMED.split())

_SPELLED = """
favorite:favourite fav:favourite favourites:favourite color:colour flavor:flavour neighbor:neighbour mum:mother
mom:mother dad:father hobbies:hobby tel:phone cellphone:phone telephone:phone mobile:phone drinks:drink
"""
_SPELLINGS = dict(pair.split(":") for pair in _SPELLED.split())
"""Words with two spellings, and the one that names an attribute."""

_ROWS = [line.partition(":") for line in _SAME.strip().replace(",\n  ", ", ").splitlines()]
NAMES = {
    way.strip().replace("_", " "): name
    for name, _, others in _ROWS
    for way in (name, *others.split(","))
    if way.strip()
}
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
    if known is not None:
        return known
    telling = [_SPELLINGS.get(word, word) for word in words if word not in _FILLER] or words[start:]
    if len(telling) > 1 and "name" in telling and _KINDS_OF_NAMES.isdisjoint(telling):
        telling.remove("name")  # the dog's name is what the dog is called
        return _known(telling, 0) or "_".join(telling)
    return _BAGS.get(frozenset(telling), "_".join(telling))


def _known(words: list[str], start: int) -> str | None:
    """The one name of the attribute that these words are, from `start` on; None for one that has no other name."""
    return NAMES.get(" ".join(words[start:])) if len(words) - start <= _WORDS_MAX else None


_BAGS = {
    frozenset(_SPELLINGS.get(word, word) for word in way.split() if word not in _FILLER): name
    for way, name in NAMES.items()
    if len([word for word in way.split() if word not in _FILLER]) > 1
}
"""The words of an attribute that matter, in any order, and its one name."""


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


@frozen
class SlotStatement:
    """One statement about a slot, under its key; times are milliseconds UTC.

    It holds from `start`, until `ends` if it says so. `memory_id` is the memory that has it, 0 for none yet; one that
    `founds` gave that memory its name.
    """

    key: str
    value: str
    scope: str
    start: int
    said_at: int
    ends: int | None = None
    corrects: bool = False
    memory_id: int = 0
    founds: bool = False

    @property
    def place(self) -> tuple[int, int, bool, str]:
        """Where it stands among the others."""
        return self.start, self.said_at, self.corrects, self.key


@dataclass(slots=True)
class Period:
    """A time in which one value held, in one scope: the keys of the statements that say so, in order.

    `founder` is the one that names its memory. It held until `until`, and `after` is the statement that ended it.
    """

    value: str
    scope: str
    start: int
    told: list[SlotStatement] = field(default_factory=list)
    until: int | None = None
    after: SlotStatement | None = None

    @property
    def founder(self) -> SlotStatement:
        """The statement that gave the memory its name, or is to give it: the first."""
        return next((one for one in self.told if one.founds), self.told[0])

    @property
    def ends(self) -> int | None:
        """When it ends by its own end date: the last one stated; a later restatement without an end removes it."""
        said = [(one.said_at, one.key, one.ends) for one in self.told if one.ends is not None]
        ends = max(said)[2] if said else None
        return None if ends is None or any(one.start >= ends for one in self.told) else ends

    def takes(self, told: SlotStatement, scope: str) -> bool:
        """Whether a statement that follows says that it goes on; a memory of `scope` is not taken for another."""
        both_found = told.founds and told.scope == scope and any(one.founds and one.scope == scope for one in self.told)
        return told.value == self.value and not both_found

    def close(self, told: SlotStatement | None) -> None:
        """End it at the next statement, or at its own end date, whichever is first."""
        self.until = self.ends
        if told is not None and (self.until is None or told.start < self.until):
            self.until, self.after = told.start, told


def periods(told: Sequence[SlotStatement]) -> list[Period]:
    """What held when, in each scope that anything was said in; every statement is in exactly one period."""
    return [period for scope in sorted({one.scope for one in told}) for period in _of(scope, told)]


def _of(scope: str, told: Sequence[SlotStatement]) -> Iterator[Period]:
    heard = sorted((one for one in told if within(scope, one.scope)), key=lambda one: one.place)
    corrections = [one for one in heard if one.corrects]
    found: list[Period] = []
    current: Period | None = None
    apart = False
    for one in heard:
        if (word := next((by for by in corrections if _outranks(by, one)), None)) is not None:
            # it ends nothing; but what follows it is a period of its own, so that no two ever become one
            found.append(Period(one.value, scope, one.start, [one], one.start, word))
            apart = True
        elif current is not None and not apart and current.takes(one, scope):
            current.told.append(one)
        else:
            if current is not None:
                current.close(one)
            current, apart = Period(one.value, scope, one.start, [one]), False
            found.append(current)
    if current is not None:
        current.close(None)
    for period in found:
        period.told = [one for one in period.told if one.scope == scope]
        if period.told:
            period.start = period.told[0].start
            yield period


def _outranks(by: SlotStatement, one: SlotStatement) -> bool:
    """Whether a correction says that a statement never held."""
    extracted = not one.corrects and one.said_at <= by.said_at
    return extracted and by.start <= one.start and by.value != one.value
