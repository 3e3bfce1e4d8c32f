"""Gates: which of the recalled memories a turn is shown, and why the others are not (design: section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keepsaid.domain.memory import Candidate, Hit, Kind, Memory
from keepsaid.domain.prompt import Record, estimate_tokens
from keepsaid.domain.stems import stem
from keepsaid.domain.words import topic, words
from keepsaid.memory.block import PINNED, RELEVANT, line

_MESSAGE_CHARS = 4_000
_MEMORY_CHARS = 8_000


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
        self._texts = {_plain(record.text) for record in records} | {_plain(said)}
        self._topic = topic(said[:_MESSAGE_CHARS])

    def overlap(self, memory: Memory) -> str:
        """Why the memory would tell nothing new; empty when it would."""
        refs = {f"{source.kind}:{source.ref}" for source in memory.new.sources} or {memory.new.key}
        if memory.new.key in self._own or refs <= self._own:
            return "part of this message"
        if memory.new.key in self._shown or refs <= self._shown | self._own or _plain(memory.text) in self._texts:
            return "already in this prompt"
        return ""

    def shared(self, memory: Memory) -> tuple[int, str] | None:
        """The first word of the memory that the messages share with it, and its place; None when there is none.

        This is the first version of the relevance test: one word is enough, if it is not a stopword or
        small talk. It does not depend on ranks, and looks at the first 8,000 characters of the memory.
        """
        if not self._topic:
            return None
        return next((found for found in words(memory.text[:_MEMORY_CHARS]) if stem(found[1]) in self._topic), None)


class Selection:
    """Goes through candidates, best first, and fills the block until a limit is reached."""

    def __init__(self, visible: Visible, settings: InjectionSettings) -> None:
        self._visible = visible
        self._settings = settings
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
        reason = self._repeated(hit.memory) or self._visible.overlap(hit.memory)
        chosen = False
        if not reason:
            chosen, reason = self._judge(hit.memory, heading)
        self.candidates.append(Candidate(hit, chosen, reason))

    def _repeated(self, memory: Memory) -> str:
        if memory.id in self._ids:
            return "the same memory again"
        self._ids.add(memory.id)
        if memory.state != "active":
            return f"no longer valid: {memory.state}"
        return "the same words as another memory" if _plain(memory.text) in self._texts else ""

    def _judge(self, memory: Memory, heading: str) -> tuple[bool, str]:
        shared = (0, "") if heading == PINNED else self._visible.shared(memory)
        if shared is None:
            return False, "no shared words"
        if sum(map(len, self._lines.values())) >= self._settings.items_max:
            return False, f"over the limit of {self._settings.items_max} memories"
        place, word = shared
        written = line(memory, self._settings.chars_max, place)
        tokens = estimate_tokens(f"{written}\n" if self._lines[heading] else f"{heading}\n{written}\n")
        if tokens > self._tokens_left:
            return False, "over the token budget"
        self._tokens_left -= tokens
        self._lines[heading].append(written)
        self._texts.add(_plain(memory.text))
        return True, f'shares "{word}"' if word else "pinned"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
