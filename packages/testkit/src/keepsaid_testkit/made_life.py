"""Made-up lives, to measure truth by: people whose facts change, told in other words, late, and among small talk.

The same for the same seed. What each saying states is known, so that a store can be measured and not a model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from random import Random
from types import MappingProxyType

from keepsaid.values import frozen

DAY_MS = 86_400_000

PEOPLE = (
    "Ada",
    "Bruno",
    "Chloe",
    "Dmitri",
    "Elif",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Keiko",
    "Lars",
    "Mira",
    "Nuno",
    "Olga",
    "Pablo",
    "Quinn",
    "Rosa",
    "Stefan",
    "Tala",
)

_PLACES = ("Porto", "Lisbon", "Ghent", "Oslo", "Turin", "Leeds", "Lyon", "Graz", "Malmo", "Cork")
_NAMES = ("Marta", "Igor", "Selma", "Viktor", "Paula", "Anton", "Noor", "Felix", "Irene", "Oscar")
_FIRMS = ("Northwind", "Bluefin", "Acorn", "Helix", "Quarry", "Lumen", "Tidal", "Foundry", "Marble", "Sparrow")
_THINGS = ("amber", "cobalt", "olive", "crimson", "ivory", "teal", "violet", "copper", "indigo", "sand")
_TIMES = ("six", "seven", "half past seven", "eight", "nine", "ten", "noon", "half past five", "four", "eleven")

ATTRIBUTES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("home city", "office city", "birth town", "holiday place", "meeting place"), _PLACES),
        **dict.fromkeys(("favourite restaurant", "favourite cafe", "gym", "school", "library"), _FIRMS),
        **dict.fromkeys(("employer", "bank", "insurer", "phone company", "landlord"), _FIRMS),
        **dict.fromkeys(("dentist", "doctor", "boss", "neighbour", "flatmate"), _NAMES),
        **dict.fromkeys(("dog", "cat", "teacher", "lawyer", "hairdresser"), _NAMES),
        **dict.fromkeys(("favourite colour", "car colour", "bike colour", "door colour", "tent colour"), _THINGS),
        **dict.fromkeys(("kitchen colour", "sofa colour", "team colour", "coat colour", "boat colour"), _THINGS),
        **dict.fromkeys(("alarm time", "lunch time", "train time", "call time", "closing time"), _TIMES),
    }
)
"""Forty things of which a person has one at a time, and what it may be."""

_WAYS = (
    "my {what} is {value}",
    "my {what} is {value} now",
    "by the way, {value} is my {what} these days",
    "I have changed my {what} to {value}",
    "from now on my {what} will be {value}",
    "you should know that my {what} is now {value}",
)
_AGAIN = (
    "as I said, my {what} is {value}",
    "yes, {value}, that is my {what}",
    "still the same: my {what} is {value}",
)
_LATE = "I forgot to say: since day {day} my {what} was {value}"
_NOISE = (
    "good morning",
    "thanks, that helped a lot",
    "what a long day",
    "can you hear me?",
    "ok, talk to you later",
    "haha yes",
    "the weather is awful again",
    "I am on the train, the line is bad",
    "what do you think about it?",
    "let us look at it tomorrow",
)


@frozen
class Stated:
    """What a saying states: a person's attribute has a value, since `since`, milliseconds UTC."""

    person: str
    attribute: str
    value: str
    since: int


@frozen
class LifeSaying:
    """One saying: when, by whom, its words, and what it states, None for small talk."""

    at: int
    person: str
    text: str
    stated: Stated | None = None


@frozen
class MadeLife:
    """Lives of `PEOPLE` with a number of changes of facts, in order of time; times are milliseconds UTC."""

    seed: int = 7
    changes: int = 1_000
    start: int = 1_735_689_600_000
    said: tuple[LifeSaying, ...] = field(init=False)
    _held: dict[tuple[str, str], list[tuple[int, str]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "said", tuple(sorted(self._tell(), key=lambda one: one.at)))

    def holds(self, person: str, attribute: str, at: int) -> str | None:
        """What an attribute of a person was at a time, whenever it was stated; None before it had any value."""
        held = self._held.get((person, attribute), [])
        place = bisect_right(held, at, key=lambda one: one[0])
        return held[place - 1][1] if place else None

    def replay_sayings(self) -> Iterator[tuple[LifeSaying, Mapping[tuple[str, str], str]]]:
        """Yield the sayings in order, each with the value of every slot as stated up to then."""
        newest, holding = dict[tuple[str, str], int](), dict[tuple[str, str], str]()
        for one in self.said:
            if one.stated is not None:
                slot = one.stated.person, one.stated.attribute
                if one.stated.since >= newest.get(slot, 0):
                    newest[slot], holding[slot] = one.stated.since, one.stated.value
            yield one, holding

    @property
    def slots(self) -> Sequence[tuple[str, str]]:
        """The people and attributes that ever had a value."""
        return tuple(self._held)

    def _tell(self) -> Iterator[LifeSaying]:
        """The changes one after another; each is stated once or more, one in twenty only after the next began."""
        chance = Random(self.seed)  # noqa: S311 - repeatable, not secret
        at, late = self.start, dict[tuple[str, str], Stated]()
        for _ in range(self.changes):
            at += chance.randrange(DAY_MS // 20, DAY_MS // 4)
            person, attribute = chance.choice(PEOPLE), chance.choice(tuple(ATTRIBUTES))
            held = self._held.setdefault((person, attribute), [])
            other = [value for value in ATTRIBUTES[attribute] if not held or value != held[-1][1]]
            stated = Stated(person, attribute, chance.choice(other), at)
            held.append((at, stated.value))
            if (missed := late.pop((person, attribute), None)) is not None:
                day = (missed.since - self.start) // DAY_MS
                yield self._says(at + 2_000, missed, _LATE.replace("{day}", str(day)))
            if chance.random() < 0.05:
                late[person, attribute] = stated
            else:
                yield self._says(at, stated, chance.choice(_WAYS))
                for n in range(chance.choice((0, 0, 1, 2))):
                    yield self._says(at + 60_000 * (n + 1), stated, chance.choice(_AGAIN))
            for n in range(chance.choice((0, 1, 1, 2))):
                yield LifeSaying(at + 30_000 * (n + 1) + n, chance.choice(PEOPLE), chance.choice(_NOISE))

    @staticmethod
    def _says(at: int, stated: Stated, way: str) -> LifeSaying:
        return LifeSaying(at, stated.person, way.format(what=stated.attribute, value=stated.value), stated)
