"""References between messages of a conversation, found by rules: whom a message turns to, and which one it answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import exp

from keepsaid.text.topics import topic
from keepsaid.text.words import fold, spelled
from keepsaid.values import frozen

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


@frozen
class MessageText:
    """Text of one message or answer in a conversation; `ref` names it there, `speaker` identifies its author.

    `name` is what others call the speaker, `at` milliseconds, `answers` the ref of the message it answers.
    """

    ref: str
    speaker: str
    text: str
    at: int = 0
    name: str = ""
    answers: str | None = None


@frozen
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


@frozen
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
        if (found := _FIRST.match(text[:_READ_CHARS_MAX])) is None:
            return ""
        at, word, mark = found.groups()
        if not (at or mark) and len(word) < _NAME_CHARS_MIN:
            return ""
        return self._called.get(fold(word.strip(_AROUND_NAMES)), "")

    def within(self, calls: frozenset[str]) -> frozenset[str]:
        """The speakers who are called by any of these words."""
        return frozenset(self._called[call] for call in calls & self._called.keys())


def read(said: MessageText, names: Names, answered: str = "") -> Read:
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


REACH = 50
"""Messages back that may be answered."""

_MINUTE_MS = 60_000
_NEAR = (1, 2, 3, 6, 14, 20, 50)
"""Messages back."""
_GAP = (1, 4, 15)
"""Whole minutes between them."""
_LONG = (7, 25)
"""Words of the new message."""
_BEYOND = "more"
_AGAIN = 40
_BRIEF = 3
_KNOWN = 10
"""Messages without one of a speaker after which that speaker is new: at the beginning everybody is."""

_RELATIONS = """
own 1, own.last 2, own.same 10, own.same.last 10, own.apart -7, own.apart.last -6
named.me 25, named.me.last 16, named.loose 28, named.loose.last 3, named.aside 7, named.aside.last 6
mentioned.me 7, mentioned.me.last 7, mentioned.loose 12, mentioned.loose.last 6
mentioned.aside 4, mentioned.aside.last 6
open.me 2, open.me.last 4, open.loose -16, open.loose.last 9, open.aside -23
elsewhere.me -5, elsewhere.me.last -3, elsewhere.loose -19, elsewhere.loose.last -3, elsewhere.aside -16
elsewhere.aside.last -5, elsewhere.too -9, elsewhere.too.last -8
"""
"""Who turns to whom. Before the dot the new message: it comes from the same speaker, turns to the earlier one's
speaker, mentions him, turns to somebody else, or to nobody. After it the earlier message: it turns to the new one's
speaker, to nobody, to another, to the same as the new one. `last`: no later message stands in this relation."""

_PLACES = """
near.1 7, near.2 8, near.3 7, near.6 4, near.14 -2, near.20 -7, near.50 -13
gap.1 7, gap.15 -7, gap.more -11, own.next 12, own.latest 8, own.older -7, latest 2, passed -14
"""
"""How far back it is: `latest` of its speaker, `passed` by the new one's speaker, who has spoken since."""

_SENSE = """
partner 9, partner.open 7, asked 3, assents 12, greets 4, brief -7, shared 19, rare 9, own.asked 6, own.assents -6
"""
"""What is said: by the partner of the last exchange, a question that nobody has turned to, words in common, ..."""

_STARTS = """
start 7, start.new 21, start.again 6, start.asks 11, start.greets 13, start.named -7
start.long.7 -4, start.long.25 1, start.long.more 9
"""
"""It answers none: its speaker is new here, or comes back after long; it asks, greets, turns to nobody, is long."""

_SIGNS = re.split(r"[,\n]+", f"{_RELATIONS}{_PLACES}{_SENSE}{_STARTS}".strip())
WEIGHTS: Mapping[str, int] = {name: int(tenths) for name, tenths in map(str.split, _SIGNS)}
"""What each sign counts, in tenths of a logarithm of the odds."""

_REASONS = {
    "named": "it turns to the speaker by name",
    "mentioned": "it names the speaker",
    "own": "it goes on with the speaker's own words",
    "partner": "the last exchange was with this speaker",
    "asked": "it was a question without an answer",
    "shared": "both speak of the same",
    "open.me": "it was said to the one who speaks now",
    "assents": "it assents to what was just said",
    "near": "it stands nearest",
}
"""Why, in the order in which a reason is looked for."""


@frozen
class Guess:
    """The message that is answered, how sure that is (0 to 1), and why it is thought so."""

    ref: str
    score: float
    reason: str


def infer(history: Sequence[MessageText], new: MessageText) -> Guess | None:
    """The message of `history` (oldest first) that `new` answers; None when it starts something of its own.

    Only the last `REACH` messages are looked at. The same messages give the same guess.
    """
    history = history[-REACH:]
    scene = scene_of(history, new)
    sums = [sum(WEIGHTS.get(sign, 0) for sign in scene.signs(n)) for n in range(len(history))]
    start = sum(WEIGHTS.get(sign, 0) for sign in scene.start())
    best = max(range(len(sums)), key=lambda n: (sums[n], n), default=None)
    if best is None or sums[best] < start:
        return None
    odds = sum(exp((one - sums[best]) / 10) for one in (*sums, start))
    signs = set(scene.signs(best))
    signs |= {sign.split(".")[0] for sign in signs}
    reason = next(reason for sign, reason in _REASONS.items() if sign in signs)
    return Guess(history[best].ref, round(1 / odds, 3), reason)


def scene_of(history: Sequence[MessageText], new: MessageText) -> ReferenceScene:
    """The messages, read: who is meant by which name follows from who speaks in them."""
    everybody = (*history, new)
    names = Names((one.speaker, one.name) for one in everybody)
    speakers: dict[str | None, str] = {one.ref: one.speaker for one in history}
    speakers[None] = ""
    *before, last = [read(one, names, speakers.get(one.answers, "")) for one in everybody]
    return ReferenceScene(before, last)


class ReferenceScene:
    """A new message, what was said before it, and the signs between them."""

    def __init__(self, before: Sequence[Read], new: Read) -> None:
        self.before = before
        self.new = new
        self.latest_of: dict[str, int] = {}
        self.spread: dict[str, int] = {}
        self.turned_at: dict[str, int] = {}
        for n, one in enumerate(before):
            self.latest_of[one.speaker] = n
            self.turned_at |= dict.fromkeys((one.to, *one.named), n)
            for word in one.words.about:
                self.spread[word] = self.spread.get(word, 0) + 1
        self.own = self.latest_of.get(new.speaker, -1)
        self.partner = self._partner()
        self.kinds = [self._kind(one) for one in before]
        self.last_kinds = {kind: n for n, kind in enumerate(self.kinds)}

    def _partner(self) -> str:
        """With whom the speaker had the last exchange."""
        me = self.new.speaker
        for one in reversed(self.before):
            if one.to == me:
                return one.speaker
            if one.speaker == me and one.to:
                return one.to
        return ""

    def _kind(self, one: Read) -> str:
        """Who turns to whom, in the new message and in an earlier one."""
        new = self.new
        if one.speaker == new.speaker:
            return "own.same" if new.to == one.to and new.to else "own.apart" if new.to and one.to else "own"
        if new.to == one.speaker:
            here = "named"
        elif one.speaker in new.named:
            here = "mentioned"
        else:
            here = "elsewhere" if new.to else "open"
        if new.speaker == one.to or new.speaker in one.named:
            return f"{here}.me"
        if here == "elsewhere" and one.to == new.to:
            return "elsewhere.too"
        return f"{here}.aside" if one.to else f"{here}.loose"

    def signs(self, n: int) -> Iterator[str]:
        """The signs that hold for an earlier message."""
        one, kind = self.before[n], self.kinds[n]
        yield "near." + _step(len(self.before) - n, _NEAR)
        yield "gap." + _step(max(self.new.at - one.at, 0) // _MINUTE_MS, _GAP)
        yield kind
        if self.last_kinds[kind] == n:
            yield kind + ".last"
        if one.speaker == self.new.speaker:
            yield from self._continues(n)
        else:
            yield from self._answers(n)

    def _continues(self, n: int) -> Iterator[str]:
        yield "own.latest" if self.own == n else "own.older"
        if n == len(self.before) - 1:
            yield "own.next"
        if self.before[n].words.asks:
            yield "own.asked"
        if self.new.words.assents:
            yield "own.assents"

    def _answers(self, n: int) -> Iterator[str]:
        one = self.before[n]
        if self.own > n:
            yield "passed"
        if self.latest_of[one.speaker] == n:
            yield "latest"
        if one.speaker == self.partner:
            yield "partner"
            if not self.new.to:
                yield "partner.open"
        if one.words.asks and self.turned_at.get(one.speaker, -1) < n:
            yield "asked"
        yield from self._agrees(one.words)

    def _agrees(self, earlier: Wording) -> Iterator[str]:
        words = self.new.words
        if words.assents:
            yield "assents"
        if words.greets and earlier.greets:
            yield "greets"
        if earlier.count < _BRIEF:
            yield "brief"
        if shared := words.about & earlier.about:
            yield "shared"
            if any(self.spread[word] == 1 for word in shared):
                yield "rare"

    def start(self) -> Iterator[str]:
        """The signs that it answers none of them."""
        new, words = self.new, self.new.words
        yield "start"
        if self.own < 0 and len(self.before) >= _KNOWN:
            yield "start.new"
        elif self.own >= 0 and len(self.before) - self.own > _AGAIN:
            yield "start.again"
        if new.to:
            yield "start.named"
        elif words.asks:
            yield "start.asks"
        if words.greets:
            yield "start.greets"
        yield "start.long." + _step(words.count, _LONG)


def _step(value: int, bounds: Sequence[int]) -> str:
    return next((str(bound) for bound in bounds if value <= bound), _BEYOND)
