"""Gates: which recalled memories a turn is shown and why others are not; relevance apart from rank (design: 4.3)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import fsum

from keepsaid.domain import ids, prompt
from keepsaid.domain.memory import LANE_BOUND, Candidate, Hit, Kind, Memory, PinnedOrder
from keepsaid.domain.receipt import Cause, Measure
from keepsaid.memory.block import PINNED, RELEVANT, line
from keepsaid.memory.fact_questions import NO_QUESTION, FactQuestion, asks, speaks_of_self
from keepsaid.memory.recall.ranking import VECTOR
from keepsaid.text.dates import DAYS, WEEKDAYS
from keepsaid.text.languages import content_terms, function_words, indexed_terms
from keepsaid.text.tokens import estimate_tokens
from keepsaid.text.topics import topic
from keepsaid.text.words import DocumentFrequencies, beginnings, fold, place, root, said_words, spelled
from keepsaid.values import frozen

ENOUGH = 7.8
"""What speaks for the best candidate before any is shown.

A logistic regression on questions of LoCoMo and BEAM (the first five conversations of each), on 600 short questions of
a person and on small talk and commands in twelve languages (docs/develop/benchmarks.md, `python -m bench.gate`).
"""

SHARE = 0.42
"""What is shown beside the best has at least this part of its value in recall: few and right lines."""

FIRST = 10
"""And it is among this number of what recall found and something speaks for."""

COVERED, EACH_WORD = 5.2, 1.2
"""The part of the message's words that a memory has, by how rare they are; and each of up to five words."""

ASKED, OF_SELF, TOLD_OF, KEPT = 2.3, 3.9, 7.2, 1.0
"""A question; one that somebody asks of themself ("my"); a speaker whom the message names; and what was learned."""

NEAR, NEAR_FROM = 20.0, 0.1
"""What each cosine above the second counts. It adds to the rest: nobody needs more words for having an embedder."""

_WORDS_MAX = 5
_NEVER_SAID = ""

_MESSAGE_CHARS, _COMPARED_CHARS = 4_000, 8_000
_SMALL_TALK_CHARS = 400
"""Nobody's small talk is longer."""

_DAY_MS = 86_400_000
_TALKING = "hear see know tell say talk speak mean feel sound understand joke"
_OF_TALK = frozenset(map(root, (*DAYS, *_TALKING.split())))
"""Words that say when, seen from now, and words about talking itself: they stand in small talk as in questions."""

_WEEKDAYS = frozenset(map(root, WEEKDAYS))

_WORD = re.compile(r"[^\W_]+")


@frozen
class MemoryEvidence:
    """What speaks for one memory: the sum, the shared words' part of it, and the first shared word with its place.

    `news` is false when the memory says nothing that the message does not say.
    """

    total: float
    shared: float
    nearer: float
    first: tuple[int, str] | None
    news: bool


class Relevance:
    """The test for one message, `said`, whose words are as rare as `rarity` tells."""

    def __init__(self, said: str, rarity: DocumentFrequencies) -> None:
        said = said[:_MESSAGE_CHARS]
        self._words = [terms for terms in content_terms(said) if terms[0] not in _OF_TALK]
        self._worth = {term: rarity.idf(term) for term in rarity.among if term not in _OF_TALK}
        self._said = {root(word) for word in spelled(said)}
        self._beginnings, self._begins = beginnings(self._worth)
        self._has_further = any(not term.isascii() for term in self._worth)
        self._told_of = set(mentioned_stems(said))
        self._grammar = function_words(said)
        never = rarity.idf(_NEVER_SAID)
        self._values = [
            max((self._worth[term] for term in word if term in self._worth), default=never) for word in self._words
        ]
        self._base = (ASKED + (OF_SELF if speaks_of_self(said) else 0.0)) if asks(said) else 0.0
        small = _OF_TALK if asks(said) else _OF_TALK | _WEEKDAYS
        self._is_about_something = len(said) > _SMALL_TALK_CHARS or bool(topic(said) - small)

    def weigh(self, hit: Hit) -> MemoryEvidence:
        """What speaks for a hit; nothing does for one that shares no word and is not near.

        It looks at the first 8,000 characters of the memory.
        """
        memory = hit.memory
        found, first, news = self._read(memory)
        names = {root(word) for word in (*spelled(memory.new.speaker), *spelled(memory.new.subject))}
        about = found - names
        found |= self._worth.keys() & names
        if memory.new.said_at and self._worth:
            found |= self._worth.keys() & _day(memory.new.said_at // _DAY_MS)
        covered = [value for word, value in zip(self._words, self._values, strict=True) if not found.isdisjoint(word)]
        shared = fsum(covered)
        nearer = next((place.score for place in hit.places if place.leg == VECTOR), 0.0)
        near = NEAR * max(0.0, nearer - NEAR_FROM)
        if not self._is_about_something or not (found or near):
            return MemoryEvidence(0.0, shared, nearer, first, news)
        total = self._base + near + EACH_WORD * min(len(covered), _WORDS_MAX)
        if covered:
            total += COVERED * shared / fsum(self._values)
        if about and names & self._told_of:
            total += TOLD_OF
        if memory.new.kind not in LANE_BOUND:
            total += KEPT
        return MemoryEvidence(total, shared, nearer, first, news)

    def _read(self, memory: Memory) -> tuple[set[str], tuple[int, str] | None, bool]:
        """The shared words of a text, the first of them, and whether there are others that mean something."""
        text = memory.text[:_COMPARED_CHARS]
        found: set[str] = set()
        first: tuple[int, str] | None = None
        news = memory.new.kind not in LANE_BOUND
        for n, word in enumerate(spelled(text)):
            if news and (begins := word[: self._begins]) not in self._beginnings and begins.isascii():
                continue
            stem = root(word)
            if stem in self._worth:
                found.add(stem)
                first = first or (n, fold(word))
            elif not news:
                news = stem not in self._said and fold(word) not in self._grammar
        further = indexed_terms(text) if self._has_further else ()  # none of these is of ASCII letters alone
        return found | (self._worth.keys() & further), first, news


@lru_cache(1_024)
def _day(number: int) -> frozenset[str]:
    """The stems of the words that name a day, counted from 1970."""
    return frozenset(map(root, spelled(said_words(number * _DAY_MS or 1))))


def select_relevant(hits: Sequence[Hit], evidence: Sequence[MemoryEvidence], least: float = ENOUGH) -> frozenset[int]:
    """Return the places of the candidates that come to mind, given what speaks for each of them.

    A message that nothing known has to do with reaches `least` with no candidate; then nothing comes to mind.
    """
    there = [n for n, one in enumerate(evidence) if one.news and one.total]
    if not there or max(evidence[n].total for n in there) < least:
        return frozenset()
    worth = SHARE * max(hits[n].score for n in there)
    ranked = sorted(there, key=lambda n: (-hits[n].score, hits[n].memory.id))
    return frozenset(n for n in ranked[:FIRST] if hits[n].score >= worth)


def mentioned_stems(said: str) -> Iterator[str]:
    """Return the stems of the words that may name somebody talked about, not addressed.

    Whoever is addressed stands first, last, or next to a comma: "good night, Eva", "Eva, listen", "thanks Eva!".
    """
    words = list(_WORD.finditer(said))
    for before, word in pairwise(words[:-1]):
        if said[word.end() : word.end() + 1] != "," and said[before.end() : word.start()].rstrip()[-1:] != ",":
            yield root(word.group())


_MEMORY_CHARS = 8_000
_KEPT_CHARS_MAX = 1_000
_BREAK_TOKENS = 1

Verdict = tuple[Cause, str]
"""The outcome of a candidate, and the reason in words."""


@frozen
class InjectionSettings:
    """Limits of injection (seed 001; design: section 4.3). Times in milliseconds, tokens estimated.

    `per_leg` is how many memories each leg of recall gives, `chars_max` how much of one memory is shown, `alike` the
    cosine above which two say the same. Of each of `pinned_kinds` the first `pinned_each` are shown whatever the
    message is about: the newest, or the most important. With `cross` episodes and summaries of other lanes come to
    mind, with `chats` the episodes of the person's other direct chats.
    """

    items_max: int = 25
    tokens_max: int = 2_000
    per_leg: int = 20
    chars_max: int = 1_200
    alike: float = 0.85
    pinned_kinds: tuple[Kind, ...] = ()
    pinned_each: int = 3
    pinned_by: PinnedOrder = PinnedOrder.RECENT
    fresh_ms: float = 50.0
    deadline_ms: float = 150.0
    cross: bool = False
    chats: bool = True


@frozen
class PromptShown:
    """What the prompt shows without injection, and what it was given before.

    `refs` and `own` are references such as `message:17` and `reply:9`: of the lane's records, and of the messages to
    be answered. `standing` are the memories that earlier blocks still show, `lately` those that a lane was given a
    short while ago and is not to be given again, `wrong` those that somebody there said were wrong.
    """

    refs: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    standing: frozenset[int] = frozenset()
    lately: frozenset[int] = frozenset()
    wrong: frozenset[int] = frozenset()


class Visible:
    """Tells what the prompt shows anyway; `said` is the combined text of the messages."""

    def __init__(self, shown: PromptShown, records: Sequence[prompt.Record], said: str) -> None:
        self.shown = shown
        self._all = shown.refs | shown.own
        self._texts = {plain(record.text) for record in records} | {plain(said)}

    def overlap(self, memory: Memory, said: str) -> Verdict | None:
        """Why the memory, whose plain text is `said`, would tell nothing new; None when it would."""
        shown = self.shown
        if memory.id in shown.wrong:
            return Cause.WRONG, "somebody said here that it was wrong"
        refs = {f"{source.kind}:{source.ref}" for source in memory.new.sources} or {memory.new.key}
        if memory.new.key in shown.own or refs <= shown.own:
            return Cause.VISIBLE, "part of this message"
        if memory.new.key in shown.refs or refs <= self._all or said in self._texts:
            return Cause.VISIBLE, "already in this prompt"
        if memory.id in shown.standing:
            return Cause.VISIBLE, "still shown from an earlier turn"
        return (Cause.REINJECT, "shown a few turns ago") if memory.id in shown.lately else None


@frozen
class _Sifted:
    """A candidate that was looked at: the part of the block it would stand in, or what it fell to."""

    hit: Hit
    heading: str
    said: str
    fallen: Verdict | None
    evidence: MemoryEvidence | None = None
    carried: bool = False
    is_answer: bool = False


class Selection:
    """Goes through candidates, best first, and fills the block until a limit is reached.

    First `sift` what is known, stale or not about the message; what passes may be compared; then `choose`.
    """

    def __init__(
        self, visible: Visible, relevance: Relevance, settings: InjectionSettings, question: FactQuestion = NO_QUESTION
    ) -> None:
        self._visible = visible
        self._question = question
        self._relevance = relevance
        self._settings = settings
        self._sifted: list[_Sifted] = []
        self._chosen: set[int] = set()
        self._texts: set[str] = set()
        self._lines: dict[str, list[str]] = {PINNED: [], RELEVANT: []}
        self._tokens_left = settings.tokens_max
        self.candidates: list[Candidate] = []

    @property
    def block(self) -> str:
        """The text for the model; empty when nothing was chosen."""
        return "\n\n".join("\n".join((heading, *lines)) for heading, lines in self._lines.items() if lines)

    def sift(self, pinned: Sequence[Hit], recalled: Sequence[Hit]) -> tuple[int, ...]:
        """Look at all candidates, pinned ones first; returns those that pass, to be compared."""
        evidence = [self._relevance.weigh(hit) for hit in recalled]
        through = select_relevant(recalled, evidence)
        answers = self._question.answers([hit.memory for hit in recalled])
        seen: set[int] = set()
        for hit in pinned:
            said = plain(hit.memory.text)
            self._sifted.append(_Sifted(hit, PINNED, said, self._known(hit.memory, said, seen)))
        for n, (hit, one) in enumerate(zip(recalled, evidence, strict=True)):
            said = plain(hit.memory.text)
            fallen = self._known(hit.memory, said, seen)
            if fallen is None and hit.memory.id not in answers:
                fallen = _gated(one, n in through, bool(through)) or _replaced(hit.memory, answers)
            self._sifted.append(_Sifted(hit, RELEVANT, said, fallen, one, is_answer=hit.memory.id in answers))
        self._carry_successors([hit for n, hit in enumerate(recalled) if n in through])
        return tuple(one.hit.memory.id for one in self._sifted if one.fallen is None)

    def _carry_successors(self, relevant: Sequence[Hit]) -> None:
        """Let in what holds now in place of a memory that is relevant, although it shares no word with the message."""
        places = {one.hit.memory.id: at for at, one in enumerate(self._sifted)}
        for hit in relevant:
            at = places.get(hit.now_id)
            if at is not None and (fallen := self._sifted[at].fallen) is not None and fallen[0] is Cause.GATE:
                self._sifted[at] = replace(self._sifted[at], fallen=None, carried=True)

    def _known(self, memory: Memory, said: str, seen: set[int]) -> Verdict | None:
        if memory.id in seen:
            return Cause.DUPLICATE, "the same memory again"
        seen.add(memory.id)
        if memory.state != "active":
            return Cause.INVALID, f"no longer valid: {memory.state}"
        return self._visible.overlap(memory, said)

    def choose(self, alike: Collection[tuple[int, int]] = ()) -> None:
        """Fill the block with what passed, leaving out what is `alike` to something the prompt shows already."""
        same: dict[int, set[int]] = {}
        for one, other in alike:
            same.setdefault(one, set()).add(other)
            same.setdefault(other, set()).add(one)
        for sifted in self._sifted:
            memory_id = sifted.hit.memory.id
            verdict = sifted.fallen or self._repeated(sifted, same.get(memory_id, set())) or self._written(sifted)
            chosen = verdict[0] in (Cause.PINNED, Cause.RELEVANT)
            if chosen:
                self._chosen.add(memory_id)
                self._texts.add(sifted.said)
            self.candidates.append(Candidate(sifted.hit, chosen, verdict[1], verdict[0], tuple(_measures(sifted))))

    def _repeated(self, one: _Sifted, same: set[int]) -> Verdict | None:
        if one.said in self._texts:
            return Cause.DUPLICATE, "the same words as another memory"
        shown = same & (self._chosen | self._visible.shown.standing)
        return (Cause.DUPLICATE, f"means the same as {ids.show('memory', min(shown))}") if shown else None

    def _written(self, one: _Sifted) -> Verdict:
        memory, settings = one.hit.memory, self._settings
        if sum(map(len, self._lines.values())) >= settings.items_max:
            return Cause.BUDGET, f"over the limit of {settings.items_max} memories"
        n, word = one.evidence.first or (0, "") if one.evidence else (0, "")
        long = word and len(memory.text) > settings.chars_max
        written = line(memory, settings.chars_max, place(memory.text, n) if long else 0)
        tokens = estimate_tokens(written) + _BREAK_TOKENS
        if not self._lines[one.heading]:
            tokens += estimate_tokens(one.heading) + _BREAK_TOKENS
        if tokens > self._tokens_left:
            return Cause.BUDGET, "over the token budget"
        self._tokens_left -= tokens
        self._lines[one.heading].append(written)
        if one.heading == PINNED:
            return Cause.PINNED, "pinned"
        if one.carried:
            return Cause.RELEVANT, "took the place of another memory"
        if one.is_answer:
            return Cause.RELEVANT, f"says what is asked: {memory.new.attribute}"
        return Cause.RELEVANT, f'matched "{word}"' if word else "similar in meaning"


def _gated(evidence: MemoryEvidence, passes: bool, any_passes: bool) -> Verdict | None:
    """Why a memory does not come to mind for this message; None when it does."""
    if not evidence.news:
        return Cause.GATE, "says nothing that the message does not say"
    if passes:
        return None
    if not evidence.total:
        return Cause.GATE, "no word in common"
    return Cause.GATE, "others fit better" if any_passes else "no memory is about this message"


def _replaced(memory: Memory, answers: Collection[int]) -> Verdict | None:
    """Why what was replaced is left out where the slot that is asked for is shown as it is now."""
    return (Cause.INVALID, "what holds now is shown") if answers and memory.superseded_by is not None else None


def _measures(one: _Sifted) -> Iterator[Measure]:
    if one.evidence is not None:
        yield Measure("score", round(one.evidence.total, 3), ENOUGH)
        yield Measure("words", one.evidence.shared)
        yield Measure("similarity", one.evidence.nearer)


def read_of(*hits: Sequence[Hit]) -> int:
    """How many characters of these memories are read to judge them."""
    return sum(min(len(hit.memory.text), _MEMORY_CHARS) for each in hits for hit in each)


def plain(text: str) -> str:
    """A text without its case and spacing, to tell whether two are the same; of a long one its start and length."""
    if len(text) > _MEMORY_CHARS:
        return f"{_plain(text[:_MEMORY_CHARS])} … {len(text)}"
    return _plain_kept(text) if len(text) < _KEPT_CHARS_MAX else _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


_plain_kept = lru_cache(4_096)(_plain)
