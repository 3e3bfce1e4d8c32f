"""Gates: which of the recalled memories a turn is shown, and why the others are not (design: section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from keepsaid.domain.memory import Candidate, Hit, Kind, Memory
from keepsaid.domain.prompt import Record
from keepsaid.domain.receipt import Cause
from keepsaid.domain.tokens import estimate_tokens
from keepsaid.domain.words import fold, place, root, spelled, topic
from keepsaid.memory.block import PINNED, RELEVANT, line

_MESSAGE_CHARS = 4_000
_MEMORY_CHARS = 8_000
_KEPT_CHARS_MAX = 1_000
_BREAK_TOKENS = 1
_SHOWN = frozenset({Cause.PINNED, Cause.RELEVANT})

Verdict = tuple[Cause, str]
"""What became of a candidate, and why in words."""


@dataclass(frozen=True, slots=True)
class InjectionSettings:
    """Limits of injection (seed 001; design: section 4.3). Times in milliseconds, tokens estimated.

    `per_leg` is how many memories each leg of recall gives, `chars_max` how much of one memory is shown.
    Of each of `pinned_kinds` the newest `pinned_each` are shown whatever the message is about.
    """

    items_max: int = 25
    tokens_max: int = 2_000
    per_leg: int = 20
    chars_max: int = 1_200
    pinned_kinds: tuple[Kind, ...] = ()
    pinned_each: int = 3
    fresh_ms: float = 50.0
    deadline_ms: float = 150.0


class Visible:
    """What the prompt shows without injection: records of the lane, and the messages to be answered.

    `shown` and `own` are references such as `message:17` and `reply:9`; `said` is the combined text of
    the messages, whose topic decides what is relevant to them.
    """

    def __init__(self, shown: frozenset[str], own: frozenset[str], records: Sequence[Record], said: str) -> None:
        self._shown = shown
        self._own = own
        self._all = shown | own
        self._texts = {plain(record.text) for record in records} | {plain(said)}
        self._topic = topic(said[:_MESSAGE_CHARS])
        self._initials = {letter for shared in self._topic for letter in (shared[0], shared[0].upper())}

    def overlap(self, memory: Memory, said: str) -> str:
        """Why the memory, whose plain text is `said`, would tell nothing new; empty when it would."""
        refs = {f"{source.kind}:{source.ref}" for source in memory.new.sources} or {memory.new.key}
        if memory.new.key in self._own or refs <= self._own:
            return "part of this message"
        if memory.new.key in self._shown or refs <= self._all or said in self._texts:
            return "already in this prompt"
        return ""

    def shared(self, memory: Memory) -> tuple[int, str] | None:
        """The first word of the memory that the messages share, counted from 0; None when they share none.

        This is the first version of the relevance test: one word is enough, if it is not a stopword or
        small talk. It does not depend on ranks, and looks at the first 8,000 characters of the memory.
        """
        if self._topic:
            for n, word in enumerate(spelled(memory.text[:_MEMORY_CHARS])):
                if (word[0] in self._initials or not word[0].isascii()) and root(word) in self._topic:
                    return n, fold(word)
        return None


class Selection:
    """Goes through candidates, best first, and fills the block until a limit is reached.

    Those that are `wrong` for the lane by a person's word are left out.
    """

    def __init__(self, visible: Visible, settings: InjectionSettings, wrong: frozenset[int] = frozenset()) -> None:
        self._visible = visible
        self._settings = settings
        self._wrong = wrong
        self._ids: set[int] = set()
        self._texts: set[str] = set()
        self._lines: dict[str, list[str]] = {PINNED: [], RELEVANT: []}
        self._tokens_left = settings.tokens_max
        self.candidates: list[Candidate] = []

    @property
    def block(self) -> str:
        """The text for the model; empty when nothing was chosen."""
        return "\n\n".join("\n".join((heading, *lines)) for heading, lines in self._lines.items() if lines)

    def consider(self, hit: Hit, heading: str) -> None:
        """Choose the memory of a hit for the part under `heading`, or note why not."""
        said = plain(hit.memory.text)
        cause, reason = self._repeated(hit.memory, said) or self._seen(hit.memory, said) or self._judge(hit, heading)
        chosen = cause in _SHOWN
        if chosen:
            self._texts.add(said)
        self.candidates.append(Candidate(hit, chosen, reason, cause))

    def _repeated(self, memory: Memory, said: str) -> Verdict | None:
        if memory.id in self._ids:
            return Cause.DUPLICATE, "the same memory again"
        self._ids.add(memory.id)
        if memory.state != "active":
            return Cause.INVALID, f"no longer valid: {memory.state}"
        if memory.id in self._wrong:
            return Cause.WRONG, "somebody said here that it was wrong"
        return (Cause.DUPLICATE, "the same words as another memory") if said in self._texts else None

    def _seen(self, memory: Memory, said: str) -> Verdict | None:
        overlap = self._visible.overlap(memory, said)
        return (Cause.VISIBLE, overlap) if overlap else None

    def _judge(self, hit: Hit, heading: str) -> Verdict:
        memory = hit.memory
        shared = (0, "") if heading == PINNED else self._visible.shared(memory)
        if shared is None:
            return Cause.GATE, "no shared words"
        if sum(map(len, self._lines.values())) >= self._settings.items_max:
            return Cause.BUDGET, f"over the limit of {self._settings.items_max} memories"
        n, word = shared
        long = word and len(memory.text) > self._settings.chars_max
        written = line(memory, self._settings.chars_max, place(memory.text, n) if long else 0)
        tokens = estimate_tokens(written) + _BREAK_TOKENS
        if not self._lines[heading]:
            tokens += estimate_tokens(heading) + _BREAK_TOKENS
        if tokens > self._tokens_left:
            return Cause.BUDGET, "over the token budget"
        self._tokens_left -= tokens
        self._lines[heading].append(written)
        return (Cause.RELEVANT, f'shares "{word}"') if word else (Cause.PINNED, "pinned")


def plain(text: str) -> str:
    """A text without its case and spacing, to tell whether two are the same; of a long one its start and length."""
    if len(text) > _MEMORY_CHARS:
        return f"{_plain(text[:_MEMORY_CHARS])} … {len(text)}"
    return _plain_kept(text) if len(text) < _KEPT_CHARS_MAX else _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


_plain_kept = lru_cache(4_096)(_plain)
