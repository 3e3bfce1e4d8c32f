"""Talk: what one message of a conversation shows by itself: whom it turns to, what it is about, whether it asks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from keepsaid.domain.words import fold, spelled, topic

_READ_CHARS_MAX = 1_000
_NAME_CHARS_MIN = 3
"""A shorter word at the beginning is a name only where a mark sets it apart: `Al: ...`."""

_FIRST = re.compile(r"\s*(@)?([^\s:,]+)\s*([:,](?=\s|$))?")
_AROUND_NAMES = "@:,.;!?()'\""
_GREETINGS = "hello hi hey hiya howdy morning evening greetings yo hallo"
_ASKING = """
what whats how hows why where when who which whose is are can could do does did would will should has have am any
"""
_ASSENT = """
yes yeah yep yup no nope nah ok okay k thanks thx thank ty cool nice great sure right true exactly lol haha ah oh hmm
done perfect good awesome sorry np yw welcome agreed indeed same cheers
"""
_GREETS, _ASKS, _ASSENTS = (frozenset(words.split()) for words in (_GREETINGS, _ASKING, _ASSENT))


@dataclass(frozen=True, slots=True)
class Said:
    """One thing said in a conversation; `ref` names it there, `speaker` identifies who said it.

    `name` is what others call the speaker, `at` milliseconds, `answers` the ref of what it is known to answer.
    """

    ref: str
    speaker: str
    text: str
    at: int = 0
    name: str = ""
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class Wording:
    """What the words of a message are by themselves: topic, question, greeting, mere assent; how many there are.

    `calls` are the words that could be somebody's name.
    """

    calls: frozenset[str]
    about: frozenset[str]
    asks: bool
    greets: bool
    assents: bool
    count: int


@dataclass(frozen=True, slots=True)
class Read:
    """A message as the rules of reference see it: `to` is the speaker it turns to, "" for nobody known.

    `named` are all whose names stand in it, but for its own speaker's.
    """

    speaker: str
    at: int
    to: str
    named: frozenset[str]
    words: Wording


class Names:
    """Who is called what in one conversation: by the full name and by its first word, where only one is called so."""

    def __init__(self, people: Iterable[tuple[str, str]]) -> None:
        self._called: dict[str, str] = {}
        shared: set[str] = set()
        for speaker, name in dict.fromkeys(people):
            whole = fold((name.strip() or speaker).strip())
            for call in {whole, whole.partition(" ")[0]} - {""}:
                if self._called.setdefault(call, speaker) != speaker:
                    shared.add(call)
        for call in shared:
            del self._called[call]

    def turned_to(self, text: str) -> str:
        """The speaker whose name the text begins with; "" for none."""
        found = _FIRST.match(text[:_READ_CHARS_MAX])
        if found is None:
            return ""
        at, word, mark = found.groups()
        if not (at or mark) and len(word) < _NAME_CHARS_MIN:
            return ""
        return self._called.get(fold(word.strip(_AROUND_NAMES)), "")

    def within(self, calls: frozenset[str]) -> frozenset[str]:
        """The speakers who are called by any of these words."""
        return frozenset(self._called[call] for call in calls & self._called.keys())


def read(said: Said, names: Names, answered: str = "") -> Read:
    """The message, read; `answered` is the speaker it is known to answer, if it names nobody at the beginning.

    Who turns to himself turns to nobody.
    """
    to = names.turned_to(said.text) or answered
    words = worded(said.text[:_READ_CHARS_MAX])
    named = names.within(words.calls) - {said.speaker}
    return Read(said.speaker, said.at, "" if to == said.speaker else to, named, words)


@lru_cache(2_048)
def worded(text: str) -> Wording:
    """The words of a text, judged by themselves."""
    words = [fold(word) for word in spelled(text)]
    first = words[:3]
    calls = {fold(word.strip(_AROUND_NAMES)) for word in text.split()}
    return Wording(
        calls=frozenset(call for call in calls if len(call) >= _NAME_CHARS_MIN),
        about=topic(text),
        asks="?" in text or bool(words and words[0] in _ASKS),
        greets=any(word in _GREETS for word in first),
        assents=any(word in _ASSENTS for word in first),
        count=len(words),
    )
